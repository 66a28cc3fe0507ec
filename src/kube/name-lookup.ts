import dns, { type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";

const underWay = new Map<string, Promise<LookupAddress[]>>();

/**
 * As `dns.lookup`, but of each name one at a time, whoever asks. All members share the few threads that look names up (half of
 * UV_THREADPOOL_SIZE, in the program's first line), and a lookup that was begun cannot be called off: a name server that never answers
 * for one member would take all of them.
 */
export const lookUp: LookupFunction = (hostname, { all }, callback) => {
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
