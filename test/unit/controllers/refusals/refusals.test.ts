import { describe, expect, test } from "vitest";
import { type KubeErrorCode, RETRY_CLASS } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { aNewExport, anExportsStatus, aSecretOfTokens, aVirtualNode } from "./loops.ts";
import {
  aChangedCopy,
  aForwardedChange,
  aLargerClaim,
  aNewCopy,
  aNewDelegate,
  type Site,
  whatIsInTheWay,
} from "./sites.ts";

const CODES = Object.keys(RETRY_CLASS) as KubeErrorCode[];
const ALL: readonly KubeErrorCode[] = ["BadRequest", "Forbidden", "MethodNotAllowed", "TooLarge", "Unprocessable"];

interface Expected {
  readonly refused?: readonly KubeErrorCode[];
  readonly settled?: readonly KubeErrorCode[];
}

const sites: readonly [string, Site, Expected][] = [
  ["a new copy", aNewCopy, { refused: [...ALL, "NotFound"], settled: ["AlreadyExists"] }],
  ["what is in the way of a copy", whatIsInTheWay, { refused: [...ALL, "NotFound"] }],
  ["a changed copy", aChangedCopy, { refused: ALL, settled: ["Conflict", "NotFound"] }],
  ["a larger claim", aLargerClaim, { refused: ALL, settled: ["NotFound"] }],
  ["a new ServiceExport", aNewExport, { refused: ALL, settled: ["AlreadyExists"] }],
  ["the status of a ServiceExport", anExportsStatus, { settled: [...ALL, "Conflict", "NotFound"] }],
  ["a Secret of tokens", aSecretOfTokens, { refused: [...ALL, "NotFound"] }],
  ["a forwarded change", aForwardedChange, { refused: [...ALL, "NotFound"] }],
  ["a new delegate", aNewDelegate, { refused: [...ALL, "NotFound"] }],
  ["a virtual node", aVirtualNode, { refused: ALL, settled: ["AlreadyExists"] }],
];

describe("an error of an API server", () => {
  test.each(sites)("is classified for %s", async (_, site, { refused = [], settled = [] }) => {
    const outcomes: Partial<Record<KubeErrorCode, string>> = {};
    const expected: Partial<Record<KubeErrorCode, string>> = {};
    for (const code of CODES) {
      const error = kubeError(code, "not here", { verb: "write", resource: "things" });
      outcomes[code] = await site(error);
      expected[code] = refused.includes(code) ? "refused" : settled.includes(code) ? "settled" : "tried again";
    }
    expect(outcomes).toEqual(expected);
  });
});

test.each<[string, Site]>([
  ["a new copy", aNewCopy],
  ["a changed copy", aChangedCopy],
  ["a larger claim", aLargerClaim],
  ["a new ServiceExport", aNewExport],
  ["a Secret of tokens", aSecretOfTokens],
])("repeats the write of %s that a starting API server denies", async (_, site) => {
  const detail =
    'things is forbidden: User "legation" cannot write resource "things" in API group "" in the namespace "team"';
  const error = kubeError("Forbidden", detail, { verb: "write", resource: "things" });
  expect(await site(error)).toBe("tried again");
});
