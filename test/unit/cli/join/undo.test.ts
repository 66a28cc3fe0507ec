import { expect, test } from "vitest";
import { UndoStack } from "../../../../src/cli/join/undo.ts";

test("undoes all steps, last first, also after one that fails", async () => {
  const undone: string[] = [];
  const told: string[] = [];
  const undo = new UndoStack();
  for (const what of ["namespace", "account", "secret"]) {
    undo.push(what, async (signal) => {
      expect(signal.aborted).toBe(false);
      if (what === "account") throw new Error("forbidden");
      undone.push(what);
    });
  }
  expect(await undo.run((line) => told.push(line))).toEqual(["account (forbidden)"]);
  expect(undone).toEqual(["secret", "namespace"]);
  expect(told).toEqual(["undone: secret", "undone: namespace"]);
});

test("keeps objects up to a mark, and removes later ones", async () => {
  const undone: string[] = [];
  const undo = new UndoStack();
  const push = (what: string): void =>
    undo.push(what, async () => {
      undone.push(what);
    });
  push("account");
  const keep = undo.keepSoFar();
  push("secret");
  keep();
  await undo.run(() => {});
  expect(undone).toEqual(["secret"]);
});

test("removes each object once", async () => {
  let times = 0;
  const undo = new UndoStack();
  undo.push("thing", async () => {
    times += 1;
  });
  await undo.run(() => {});
  await undo.run(() => {});
  expect(times).toBe(1);
});
