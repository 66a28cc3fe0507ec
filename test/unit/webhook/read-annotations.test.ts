import { expect, test } from "vitest";
import { idleWarnings, placementWarnings, readAnnotations } from "../../../webhook/read-annotations.ts";

const ASKS_NOTHING =
  'does not ask for delegation by itself, so it has no effect here; write legation.dev/delegate: "true", too';

test.each<[Record<string, string>, string[]]>([
  [{ "legation.dev/cluster-selector": " " }, ["legation.dev/cluster-selector is empty: it selects every cluster"]],
  [
    { "legation.dev/delegate": "false", "legation.dev/clusters": "west" },
    ['legation.dev/delegate: "false": the pod stays in this cluster, whatever clusters are named'],
  ],
  [{ "legation.dev/api": "member" }, [`legation.dev/api: ${ASKS_NOTHING}`]],
  [
    {
      "multicluster.admiralty.io/no-reservation": "",
      "legation.dev/group": "flow-7",
      "legation.dev/overrides":
        '[{"clusters": ["west"], "patch": [{"op": "add", "path": "/spec/subdomain", "value": "x"}]}]',
    },
    [
      `multicluster.admiralty.io/no-reservation: ${ASKS_NOTHING}`,
      `legation.dev/group: ${ASKS_NOTHING}`,
      `legation.dev/overrides: ${ASKS_NOTHING}`,
    ],
  ],
  [
    { "legation.dev/delegate": "false", "legation.dev/scheduling-preferences": "{}" },
    ['legation.dev/scheduling-preferences: has no effect beside legation.dev/delegate: "false"'],
  ],
])("an annotation that is legal and surprises gets a warning: %j", (annotations, warnings) => {
  const { placement, problems } = readAnnotations(annotations);
  expect(problems).toEqual([]);
  expect([...placementWarnings(placement), ...idleWarnings(annotations, placement)]).toEqual(warnings);
});
