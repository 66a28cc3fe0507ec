import { isShown, type WantedCondition, withTransitionTime } from "../../api/conditions.ts";
import { defined } from "../../api/defined.ts";
import { PLACE_WITHIN_ANNOTATION, ROOM_CONTROLLER } from "../../api/keys.ts";
import { type Stored, timestamp } from "../../api/kubernetes.ts";
import { type AdmissionCheck, kueueCondition } from "../../api/kueue-workload.ts";
import { readOverflowAfter } from "../../api/overflow.ts";
import { admissionChecks } from "../../api/resources.ts";
import type { KueueKind } from "./kueue-controller.ts";

/** Time for an admitted workload's pods to find a place: that of Kueue's waitForPodsReady. */
const DEFAULT_PLACE_WITHIN_MS = 5 * 60_000;
const ACTIVE = "Active";

/** Kueue's AdmissionChecks `legation.dev/room`, whose condition Active tells whether workloads that need them can be admitted. */
export function roomChecks(
  /** Returns why no workload can be answered. Undefined: all are. */
  trouble: () => string | undefined,
  onEvent: KueueKind<AdmissionCheck>["onEvent"],
): KueueKind<AdmissionCheck> {
  return {
    onEvent,
    name: "room-checks",
    resource: admissionChecks,
    isAsking: isRoomCheck,
    changeOf: (check, _all, wall) => {
      const { generation } = check.metadata;
      const { conditions = [] } = check.status ?? {};
      const active = activity(problemOf(check), trouble());
      const isOfGeneration = kueueCondition(check, ACTIVE)?.observedGeneration === generation;
      if (isOfGeneration && isShown(active, conditions)) return undefined;
      const timed = withTransitionTime(active, conditions, timestamp(wall));
      const others = conditions.filter(({ type }) => type !== ACTIVE);
      return {
        content: `${active.reason} ${active.message}`,
        body: { status: { conditions: [...others, { ...timed, ...defined({ observedGeneration: generation }) }] } },
        subresource: "status",
      };
    },
  };
}

function activity(misspelt: string | undefined, trouble: string | undefined): WantedCondition {
  const type = ACTIVE;
  if (misspelt !== undefined) return { type, status: "False", reason: "Invalid", message: misspelt };
  if (trouble !== undefined) return { type, status: "False", reason: "NotReady", message: trouble };
  return { type, status: "True", reason: "Active", message: "Legation answers whether members have room" };
}

/** Returns the time in which pods have to find a place, by the check's annotation; ms. */
export function placeWithinMs({ metadata }: Stored<AdmissionCheck>): number {
  const text = metadata.annotations?.[PLACE_WITHIN_ANNOTATION];
  const seconds = text === undefined ? undefined : readOverflowAfter(text);
  return seconds === undefined ? DEFAULT_PLACE_WITHIN_MS : seconds * 1000;
}

function problemOf({ metadata, spec }: Stored<AdmissionCheck>): string | undefined {
  if (spec?.parameters !== undefined) return `spec.parameters is set, and ${ROOM_CONTROLLER} has none; remove it`;
  const text = metadata.annotations?.[PLACE_WITHIN_ANNOTATION];
  if (text === undefined || readOverflowAfter(text) !== undefined) return undefined;
  const remedy = 'write hours, minutes and seconds, e.g. "30s", "5m" or "1h30m"';
  return `the annotation ${PLACE_WITHIN_ANNOTATION} is ${JSON.stringify(text)}, no time up to 24h; ${remedy}`;
}

export function isRoomCheck({ spec }: AdmissionCheck): boolean {
  return spec?.controllerName === ROOM_CONTROLLER;
}
