/** The kind of server at an address; null if it is none that Payhooks knows. */
export function serverAt(address: string): "PostgreSQL" | "MySQL" | "Redis" | null {
  if (/^postgres(?:ql)?:\/\//.test(address)) return "PostgreSQL";
  if (/^(?:mysql|mariadb):\/\//.test(address)) return "MySQL";
  return /^(?:rediss?|unix):\/\//.test(address) ? "Redis" : null;
}
