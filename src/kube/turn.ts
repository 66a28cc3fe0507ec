// Sockets and timers wait no longer than this, beside the longest single piece of work.
const TURN_MS = 10;

const waiting: (() => void)[] = [];
let planned = false;

/**
 * Yields to the event loop. Callers go on in the order in which they came, as many in one turn of the loop as fit into
 * `TURN_MS`. Long work that many answers start at once is done in pieces this way, and the Lease is renewed in between.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (planned) return;
    planned = true;
    setImmediate(goOn);
  });
}

function goOn(): void {
  const until = performance.now() + TURN_MS;
  const next = (): void => {
    const resolve = waiting.shift();
    if (resolve === undefined) {
      planned = false;
      return;
    }
    resolve();
    // After the work that this has released.
    queueMicrotask(() => {
      if (performance.now() < until) next();
      else setImmediate(goOn);
    });
  };
  next();
}
