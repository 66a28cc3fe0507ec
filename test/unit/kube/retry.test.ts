import { expect, test } from "vitest";
import type { KubeErrorCode } from "../../../src/kube/errors.ts";
import { retryOnConflict } from "../../../src/kube/retry.ts";
import { kubeError } from "../../support/builders/kube-error.ts";

/** The attempts that it takes, or the code of the error that it ends with, when the first ones fail so. */
async function outcome(...failures: KubeErrorCode[]): Promise<readonly [number, string]> {
  let attempts = 0;
  const end = await retryOnConflict(async () => {
    attempts += 1;
    const code = failures.shift();
    if (code !== undefined) throw kubeError(code);
    return "done";
  }).catch(({ code }: { readonly code: string }) => code);
  return [attempts, end];
}

test.each<[KubeErrorCode[], number, string]>([
  [["Conflict", "AlreadyExists"], 3, "done"],
  [["Forbidden"], 1, "Forbidden"],
  [Array<KubeErrorCode>(5).fill("Conflict"), 5, "Conflict"],
])("repeats a read and its write after conflicts alone, five times at most: %j", async (failures, attempts, end) => {
  expect(await outcome(...failures)).toEqual([attempts, end]);
});
