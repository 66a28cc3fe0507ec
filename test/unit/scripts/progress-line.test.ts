import { expect, test } from "vitest";
import { ProgressLine } from "../../../scripts/demo/progress-line.ts";

type Output = ConstructorParameters<typeof ProgressLine>[0];

function recorded(options: { isTTY?: boolean; columns?: number } = {}): { written: string[]; stream: Output } {
  const written: string[] = [];
  return { written, stream: { ...options, write: (text) => written.push(String(text)) } };
}

test("rewrites one line of a terminal, no wider than it is", () => {
  const { written, stream } = recorded({ isTTY: true, columns: 20 });
  const line = new ProgressLine(stream);
  line.show("etcd: 5 s, 12 packages compiled");
  line.show("etcd: built");
  line.clear();
  line.clear();
  expect(written).toEqual(["\r\x1b[2K   etcd: 5 s, 12 pa", "\r\x1b[2K   etcd: built", "\r\x1b[2K"]);
});

test("tells repeated lines once a minute where there is no terminal, and all others", () => {
  let now = 0;
  const { written, stream } = recorded();
  const line = new ProgressLine(stream, () => now);
  line.show("building etcd");
  for (const seconds of [5, 30, 59, 65]) {
    now = seconds * 1000;
    line.show(`etcd: ${seconds} s, 12 packages compiled`);
  }
  line.show("etcd: built in 65 s");
  line.clear();
  expect(written).toEqual(["   building etcd\n", "   etcd: 65 s, 12 packages compiled\n", "   etcd: built in 65 s\n"]);
});
