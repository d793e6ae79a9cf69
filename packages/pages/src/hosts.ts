/**
 * The name in a Host field, as a browser writes it in an address: in lower case, without the port and without a dot at
 * its end. Null for what names no host.
 */
export function hostName(host: string): string | null {
  if (!/^[^\s/?#@\\%]+$/.test(host) || !URL.canParse(`http://${host}`)) return null;
  return new URL(`http://${host}`).hostname.replace(/\.$/, "") || null;
}

/** True for a name or address of this machine. DNS cannot give such a name to another site. */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/^\[|\]$|\.$/g, "");
  return (
    name === "localhost" ||
    name.endsWith(".localhost") ||
    name === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(name)
  );
}

/** True for an IP address as {@link hostName} returns it. A page under an address was sent from there: no DNS is asked. */
export function isAddress(name: string): boolean {
  return name.startsWith("[") || /^\d{1,3}(?:\.\d{1,3}){3}$/.test(name);
}
