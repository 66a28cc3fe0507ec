import { createServer } from "node:net";

// Below Linux' range of ports for outgoing connections (32768-60999), which could take a port at any moment.
const LOWEST = 20_000;
const HIGHEST = 32_767;

const given = new Set<number>();

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ host: "127.0.0.1", port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A free loopback port, never the same twice in one process. Another process may still take it first. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST + 1));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`No free loopback port between ${LOWEST} and ${HIGHEST}: stop whatever listens on them.`);
}
