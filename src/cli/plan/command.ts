import { z } from "zod";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import { readDocuments, type WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { type GlobalInput, manifestPaths, withGlobals } from "../shared/input.ts";
import { counted, printOutcome } from "../shared/output.ts";
import { asViewer } from "../shared/reading.ts";
import { readHost } from "../simulation/host-state.ts";
import { workloadKind } from "../simulation/workloads.ts";
import { type Answer, dryRunNamespace, dryRunObject, dryRunPod } from "./dry-run.ts";
import { readManifestState, workloadsOf } from "./manifest.ts";
import { planNamespaces } from "./namespaces.ts";
import { hasNoPlace, isWaiting, type Plan } from "./outcome.ts";
import { planOf } from "./plan.ts";
import { planText } from "./text.ts";
import { checkExpressions, isWholeObject, type ObjectReviewInput, reviewObject } from "./whole-object.ts";

interface PlanInput extends GlobalInput {
  readonly filename: readonly string[];
  readonly namespace?: string | undefined;
}

/** `legation plan` */
export const planCommand: Subcommand<PlanInput> = {
  description:
    "Places the pods of a manifest as the controller would, one after another, in the host's state as it is now: the same " +
    "rules, in the same words as a pod's condition. Pods that its workloads have already are placed anew. A whole Job gets one member, or a share in each that its preferences name. The host's API " +
    "server is asked by dry-run whether it lets the pods in, with your own rights; nothing is stored. An object with legation.dev/whole gets the members that placement admits. Members have the last " +
    "word: their own schedulers, quotas and admission are not asked. Exits with 5 when a pod would wait or be refused.",
  flags: [
    flag("-f, --filename <files...>", "manifests: files, folders, or - for standard input; required"),
    flag("-n, --namespace <name>", "namespace of objects that name none (default: the context's)"),
  ],
  examples: [
    ["plan -f deployment.yaml -n shop", "where each replica would go"],
    ["plan -f - -o json < job.yaml | jq .fits", "for a script"],
  ],
  input: withGlobals({ filename: manifestPaths, namespace: z.string().min(1).optional() }),
  run: async ({ filename, namespace, ...options }, session) => {
    const { stdin, terminal, signal } = session;
    const objects = await readDocuments(filename, stdin, signal);
    for (const object of objects) {
      checkNamespace(object, namespace);
      checkExpressions(object);
    }
    const sources = filename.map((name) => (name === "-" ? "standard input" : name)).join(", ");
    const whole = objects.filter(isWholeObject);
    if (whole.length === 0 && !objects.some((object) => workloadKind(object) !== undefined)) {
      throw new Failure("failure", {
        object: sources,
        problem:
          "has no Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job or CronJob to plan, and nothing with legation.dev/whole",
        remedy: "give a manifest that has one; pods of a custom resource are known when its controller has made them",
      });
    }
    const { client, namespace: contextNamespace } = await session.connect(options, "host");
    const current = namespace ?? contextNamespace;
    const workloads = workloadsOf(objects, current);
    const [host, found] = await asViewer(
      Promise.all([readHost(client, signal), readManifestState(client, objects, workloads, current, signal)]),
    );
    const namespaces = await planNamespaces(host.namespaces, objects, (one, isNew) =>
      dryRunNamespace(client, one, isNew, signal),
    );
    const ask = (pod: Pod): Promise<Answer<Stored<Pod>>> => dryRunPod(client, pod, signal);
    const types = whole.length === 0 ? [] : await asViewer(listDelegatedTypes(client, signal));
    const askObject: ObjectReviewInput["ask"] = (resource, one) => dryRunObject(client, resource, one, signal);
    const input = { types, current, namespaces, ask: askObject };
    const reviewed = await Promise.all(whole.map((object) => reviewObject(object, input)));
    const plan = await planOf({ workloads, objects: reviewed, host, namespaces, found, now: Date.now(), ask });
    printOutcome(terminal, options.output, { document: plan, text: planText(plan, terminal) });
    const passedOver = customKinds(objects.filter((object) => !isWholeObject(object)));
    if (passedOver.length > 0) {
      terminal.progress(`passed over, with whatever pods their controllers make: ${passedOver.join(", ")}`);
    }
    if (!plan.fits) throw unfit(plan, sources);
  },
};

/** Refuses an object of another namespace than was asked for, as kubectl does. */
function checkNamespace({ kind, metadata }: WrittenObject, namespace: string | undefined): void {
  if (namespace === undefined || metadata.namespace === undefined || metadata.namespace === namespace) return;
  throw new Failure("usage", {
    object: `${kind} ${metadata.name ?? metadata.generateName}`,
    field: "metadata.namespace",
    problem: `is ${metadata.namespace}, and -n says ${namespace}`,
    remedy: "leave out one of them",
  });
}

/** Returns the kinds of custom resources, whose controllers may make pods. */
function customKinds(objects: readonly WrittenObject[]): string[] {
  const custom = objects.filter(
    ({ apiVersion }) => /^[^/]*\.[^/]*\//.test(apiVersion) && !/^[^/]*\.k8s\.io\//.test(apiVersion),
  );
  return [...new Set(custom.map(({ apiVersion, kind }) => `${kind} (${apiVersion})`))].sort();
}

function unfit({ workloads }: Plan, sources: string): Failure {
  const refused = workloads.filter(({ outcome }) => outcome === "refused").length;
  const waiting = workloads.flatMap(({ pods }) => pods).filter(isWaiting).length;
  const wholeJobs = workloads.filter(({ whole }) => whole !== undefined && hasNoPlace(whole)).length;
  const wholeObjects = workloads.filter(({ object }) => object?.clusters.length === 0).length;
  const problems = [
    ...(wholeObjects === 0 ? [] : [`${counted(wholeObjects, "whole object")} would wait`]),
    ...(wholeJobs === 0 ? [] : [`${counted(wholeJobs, "whole Job")} would wait`]),
    ...(waiting === 0 ? [] : [`${counted(waiting)} would wait`]),
    ...(refused === 0 ? [] : [`${counted(refused, "object")} would be refused`]),
  ];
  return new Failure("unfit", { object: sources, problem: problems.join(", ") });
}
