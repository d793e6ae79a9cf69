/** The kind of server at an address; null if it is none that Payhooks knows. */
export function serverAt(address: string): "PostgreSQL" | "Redis" | null {
  if (/^postgres(?:ql)?:\/\//.test(address)) return "PostgreSQL";
  return /^(?:rediss?|unix):\/\//.test(address) ? "Redis" : null;
}
