let last: Promise<void> = Promise.resolve();

/**
 * Resolves when this process has looked at its sockets and timers once more, and no other waiter has been let on since. Long
 * work that was started by many answers at once goes on in pieces this way, and in between the Lease is renewed.
 */
export function turn(): Promise<void> {
  last = last.then(
    () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      }),
  );
  return last;
}
