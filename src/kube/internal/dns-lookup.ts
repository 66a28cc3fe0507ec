import dns, { type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";

const underWay = new Map<string, Promise<LookupAddress[]>>();

/**
 * Resolves names as `dns.lookup`, but shares one lookup per name between all callers. All clusters share the threads that
 * resolve names (half of UV_THREADPOOL_SIZE), and a lookup cannot be cancelled: a name server that never answers for one
 * name would otherwise block them all.
 */
export const lookUpName: LookupFunction = (hostname, { all }, callback) => {
  addressesOf(hostname).then(
    (found) => {
      const [first] = found;
      if (all === true) callback(null, found);
      else if (first === undefined) callback(new Error(`${hostname} has no address`), "");
      else callback(null, first.address, first.family);
    },
    (error: NodeJS.ErrnoException) => callback(error, ""),
  );
};

function addressesOf(hostname: string): Promise<LookupAddress[]> {
  const known = underWay.get(hostname);
  if (known !== undefined) return known;
  const found = new Promise<LookupAddress[]>((resolve, reject) => {
    dns.lookup(hostname, { all: true }, (error, addresses) => (error === null ? resolve(addresses) : reject(error)));
  });
  underWay.set(hostname, found);
  const forget = (): void => void underWay.delete(hostname);
  found.then(forget, forget);
  return found;
}
