/** Returns the host of `HOST:PORT` or `[IPv6]:PORT`, without brackets. */
export function hostOfAddress(address: string): string {
  return new URL(`https://${address}`).hostname.replace(/^\[(.*)\]$/, "$1");
}
