import { expect, inject, test } from "vitest";
// Brings the type of what global setup provides.
import type { RightsRun } from "../support/harness/global-setup.ts";
import { covers, grantedRights, rightsOfTypes, rightsToAnyName } from "../support/rights/granted.ts";
import { FORBIDDEN, UNUSED } from "../support/rights/unused.ts";
import { noteRights, readNoted } from "../support/rights/used.ts";

// Compares the rights of Legation's accounts in the manifests with their requests in all integration tests, from the audit logs.

function run(): RightsRun {
  const rights = inject("rights");
  if (rights === undefined) throw new Error("rights are judged by the integration tests: npm run test:integration");
  return rights;
}

const { folder, sets, unseen } = run();
await noteRights(sets.flatMap(({ clusters }) => clusters));
const { used, forbidden } = readNoted(folder);

test("uses every right of Legation's accounts, or gives a reason", async (context) => {
  context.skip(unseen !== undefined, unseen);
  const granted = [...(await grantedRights()), ...(await rightsOfTypes())];
  const unused = granted.filter((right) => !used.some((each) => covers(right, each)));
  expect(unused.filter((right) => UNUSED[right] === undefined)).toEqual([]);
});

test("gives a reason for every request of Legation's accounts without the right", async () => {
  const starts = Object.keys(FORBIDDEN).map((pattern) => pattern.replace(/\*$/, ""));
  const unexplained = forbidden.filter((right) => !starts.some((start) => right.startsWith(start)));
  // An API server that has just been started denies for a moment what it has not read the roles for.
  const granted = await rightsToAnyName();
  expect(unexplained.filter((right) => !granted.some((each) => covers(each, right)))).toEqual([]);
});
