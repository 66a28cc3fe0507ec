import { describe, expect, test } from "vitest";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";

describe("exit codes", () => {
  test("never change, since scripts rely on them", () => {
    expect(EXIT_CODES).toEqual({
      ok: 0,
      failure: 1,
      usage: 2,
      refused: 3,
      notReady: 4,
      unfit: 5,
      interrupted: 130,
      terminated: 143,
    });
  });
});
