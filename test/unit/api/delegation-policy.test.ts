import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { asksForDelegation, parsePlacement } from "../../../src/api/annotations.ts";
import { FOREIGN_KEYS } from "../../../src/api/foreign-annotations.ts";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../src/cli/shared/package-root.ts";

const PREFERENCES = '{"clusters": {"*": {"weight": 1}}}';
const CONSTRAINTS = "multicluster.admiralty.io/proxy-pod-scheduling-constraints";
// The webhook refuses every pod that has it.
const REFUSED = "multicluster.admiralty.io/use-constraints-from-spec-for-proxy-pod-scheduling";

/** A value of each key that has as many effects as possible. */
const VALUES: Readonly<Record<string, string>> = {
  "legation.dev/delegate": "true",
  "legation.dev/clusters": "west",
  "legation.dev/cluster-selector": "gpu",
  "legation.dev/cluster-affinity": "{}",
  "legation.dev/cluster-spread": "[{topologyKey: region, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]",
  "legation.dev/group": "one",
  "legation.dev/group-by": "owner",
  "legation.dev/scheduling-preferences": PREFERENCES,
  "legation.dev/overrides": "[]",
  "legation.dev/failover": "never",
  "legation.dev/api": "none",
  "legation.dev/mode": "overflow",
  "legation.dev/overflow-after": "30s",
  "legation.dev/wishes-of": "Deployment/web",
  "federation.kubernetes.io/replica-set-preferences": PREFERENCES,
  "federation.kubernetes.io/deployment-preferences": PREFERENCES,
  "multicluster.admiralty.io/elect": "",
  "multicluster.admiralty.io/clustername": "west",
  "multicluster.admiralty.io/no-reservation": "",
  [CONSTRAINTS]: "nodeSelector: {region: eu}",
  [REFUSED]: "",
};

const asks = (key: string, value: string): boolean => {
  const parsed = parsePlacement({ [key]: value });
  if (parsed.ok) return asksForDelegation(parsed.placement);
  if (key === REFUSED) return false;
  throw new Error(parsed.problems.map(({ message }) => message).join("; "));
};

const specSchema = z.object({ variables: z.array(z.object({ name: z.string(), expression: z.string() })) });

/** Expression of the policy for pods to delegate. */
async function policyText(): Promise<string> {
  const manifests = await loadManifests(join(packageRoot(), "manifests"));
  const policy = manifests.find(
    ({ kind, metadata }) => kind === "ValidatingAdmissionPolicy" && metadata.name === "legation-delegation",
  );
  return specSchema
    .parse(policy?.spec)
    .variables.filter(({ name }) => name === "delegate" || name === "wanted")
    .map(({ expression }) => expression)
    .join("\n");
}

describe("the policy legation-delegation", () => {
  test("knows every annotation that asks for delegation, and no other", async () => {
    const known = [...(await policyText()).matchAll(/"([a-z.]+\/[a-z-]+)"/g)].map(([, key]) => key);
    const asking = Object.entries(VALUES).filter(([key, value]) => asks(key, value));
    expect(new Set(known)).toEqual(new Set(asking.map(([key]) => key)));
  });

  test("covers every key of another project that the webhook understands", () => {
    expect(Object.keys(VALUES)).toEqual(expect.arrayContaining([...FOREIGN_KEYS]));
  });

  test.each([
    '{"nodeSelector":{"region":"eu"}}',
    "nodeSelector: {region: eu}",
    "nodeSelector:\n  region: eu\n",
    "{'nodeSelector': {'region': 'eu'}}",
    "nodeSelector: {}",
    '{"nodeSelector": { }, "affinity": {}}',
    '{"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "region", "operator": "Exists"}]}]}}}}',
  ])("reads the constraints %j as the webhook does", async (text) => {
    const [, pattern = ""] = /\.matches\(r'([^']+)'\)/.exec(await policyText()) ?? [];
    expect(new RegExp(pattern).test(text)).toBe(asks(CONSTRAINTS, text));
  });
});
