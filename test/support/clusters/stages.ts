import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { z } from "zod";

/**
 * Annotations for kwok's containers. By default a pod runs at once and for ever, a Job's pod succeeds at once, and a
 * deletion is immediate. Durations are Go's, e.g. `1500ms`.
 */
export const KWOK_ANNOTATIONS = {
  /** `pending`: never starts; `running`: never ends, even in a Job; `succeeded` or `failed`: ends so. */
  outcome: "kwok.test/outcome",
  /** Exit code of every container when the outcome is `failed`; default 1. */
  exitCode: "kwok.test/exit-code",
  /** Time from scheduled to running. */
  startsAfter: "kwok.test/starts-after",
  /** Time from running to the outcome. */
  endsAfter: "kwok.test/ends-after",
  /** Time from deletion to gone. */
  stopsAfter: "kwok.test/stops-after",
} as const;

interface Expression {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

interface Stage {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly selector: { readonly matchExpressions: readonly Expression[] };
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

const stageSchema: z.ZodType<Stage> = z.looseObject({
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    selector: z.looseObject({
      matchExpressions: z.array(
        z.looseObject({
          key: z.string(),
          operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
          values: z.array(z.string()).exactOptional(),
        }),
      ),
    }),
  }),
});

function annotation(name: string): string {
  return `.metadata.annotations["${name}"]`;
}

function outcome(operator: Expression["operator"], ...values: string[]): Expression {
  return { key: annotation(KWOK_ANNOTATIONS.outcome), operator, ...(values.length === 0 ? {} : { values }) };
}

/** The stage with one more condition and, when its annotation says so, a delay. */
function refine(stage: Stage, expressions: readonly Expression[], delayAnnotation?: string): Stage {
  const { matchExpressions } = stage.spec.selector;
  const delay = delayAnnotation === undefined ? {} : { delay: { durationFrom: fromAnnotation(delayAnnotation) } };
  return {
    ...stage,
    spec: { ...stage.spec, ...delay, selector: { matchExpressions: [...matchExpressions, ...expressions] } },
  };
}

function fromAnnotation(name: string): object {
  return { expressionFrom: annotation(name) };
}

// The status that a kubelet writes when every container has ended.
function endedStatus(phase: "Succeeded" | "Failed"): string {
  const exitCode =
    phase === "Succeeded" ? "0" : `{{ or (index .metadata.annotations "${KWOK_ANNOTATIONS.exitCode}") "1" }}`;
  const conditionReason = phase === "Succeeded" ? "PodCompleted" : "PodFailed";
  return `{{ $now := Now }}
{{ $root := . }}
conditions:
{{ range $type := list "Ready" "ContainersReady" }}
- type: {{ $type }}
  status: "False"
  reason: ${conditionReason}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: false
  restartCount: 0
  started: false
  state:
    terminated:
      exitCode: ${exitCode.replace(" .metadata", " $root.metadata")}
      finishedAt: {{ $now | Quote }}
      reason: ${phase === "Succeeded" ? "Completed" : "Error"}
      startedAt: {{ or $root.status.startTime $now | Quote }}
{{ end }}
phase: ${phase}
`;
}

function endStage(name: string, whenOutcome: string, phase: "Succeeded" | "Failed"): Stage {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: "v1", kind: "Pod" },
      selector: {
        matchExpressions: [
          { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" },
          { key: ".status.phase", operator: "In", values: ["Running"] },
          outcome("In", whenOutcome),
        ],
      },
      delay: { durationFrom: fromAnnotation(KWOK_ANNOTATIONS.endsAfter) },
      next: { statusTemplate: endedStatus(phase) },
    },
  };
}

/** kwok's own stages from `folder`, with the annotations above added; YAML for `kwok --config`. */
export function kwokStages(folder: string): string {
  const load = (file: string): Stage => stageSchema.parse(parse(readFileSync(join(folder, file), "utf8")));
  const stages = [
    load("node-fast/node-initialize.yaml"),
    load("node-heartbeat-with-lease/node-heartbeat-with-lease.yaml"),
    refine(load("pod-fast/pod-ready.yaml"), [outcome("NotIn", "pending")], KWOK_ANNOTATIONS.startsAfter),
    refine(load("pod-fast/pod-complete.yaml"), [outcome("DoesNotExist")], KWOK_ANNOTATIONS.endsAfter),
    endStage("pod-succeed", "succeeded", "Succeeded"),
    endStage("pod-fail", "failed", "Failed"),
    refine(load("pod-fast/pod-delete.yaml"), [], KWOK_ANNOTATIONS.stopsAfter),
  ];
  return stages.map((stage) => stringify(stage)).join("---\n");
}
