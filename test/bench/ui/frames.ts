import type { Page } from "playwright-core";

/** Times between the frames of a page while it is used, in milliseconds. */
export async function framesDuring(page: Page, use: () => Promise<void>): Promise<number[]> {
  await page.evaluate(`
    globalThis.frames = [];
    globalThis.isMeasuring = true;
    (function next(before) {
      requestAnimationFrame((now) => {
        frames.push(now - before);
        if (isMeasuring) next(now);
      });
    })(performance.now());
  `);
  await use();
  const frames: unknown = await page.evaluate("isMeasuring = false; frames.slice(1)");
  return Array.isArray(frames) ? frames.map(Number) : [];
}

/** Memory of the page's JavaScript after a garbage collection, in megabytes (10^6 bytes). */
export async function heapMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1e6;
}
