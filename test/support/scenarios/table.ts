import { DIVISION } from "./division.ts";
import { NODES, POLICY } from "./operators.ts";
import type { Scenario } from "./scenario.ts";
import { SELECTION, SPREAD_AND_GROUPS } from "./selection.ts";
import { IN_TROUBLE } from "./trouble.ts";

/** Every scenario, by what it is about. */
export const SCENARIOS: readonly (readonly [about: string, scenarios: readonly Scenario[]])[] = [
  ["what authors select", SELECTION],
  ["pods that keep apart or together", SPREAD_AND_GROUPS],
  ["how replicas are divided", DIVISION],
  ["what nodes can do", NODES],
  ["what operators and members allow", POLICY],
  ["members in trouble, and defaults", IN_TROUBLE],
];
