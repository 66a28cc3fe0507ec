// Sockets and timers wait no longer than this, beside the longest single piece of work.
const TURN_MS = 10;

const waiting: (() => void)[] = [];
let planned = false;

/**
 * Resolves when this process has looked at its sockets and timers once more, as soon as those who came before have gone on and
 * there is time left before it looks again. Long work that was started by many answers at once is done in pieces this way,
 * and the Lease is renewed in between.
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
    // Behind what that has let on.
    queueMicrotask(() => {
      if (performance.now() < until) next();
      else setImmediate(goOn);
    });
  };
  next();
}
