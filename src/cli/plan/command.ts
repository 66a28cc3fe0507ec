import { z } from "zod";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { readDocuments, type WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { manifestPaths, withGlobals } from "../shared/input.ts";
import { printOutcome } from "../shared/output.ts";
import { checkHasWork, readPlan } from "./plan.ts";
import { planText, shortfallOf } from "./text.ts";
import { isWholeObject } from "./whole.ts";

export const command: Equip = equipped({
  description:
    "Shows where the controller would place the pods and whole objects of a manifest in the host's state as it is " +
    "now, and why not elsewhere, in the words of a pod's condition. Nothing is stored: the host's API server says by dry-run, " +
    "with your own rights, whether it lets pods and whole objects in. Pods that a workload has already are placed anew. Members have the last " +
    "word: their own schedulers, quotas and admission are not asked. Exits with 5 when a pod would wait or be refused.",
  flags: flags({
    "-f, --filename <files...>": "manifests: files, folders, or - for standard input; required",
    "-n, --namespace <name>": "namespace of objects that name none (default: the context's)",
  }),
  examples: {
    "plan -f deployment.yaml -n shop": "where each replica would go",
    "plan -f - -o json < job.yaml | jq .fits": "for a script",
  },
  input: withGlobals({ filename: manifestPaths, namespace: z.string().min(1).optional() }),
  working: "planning",
  run: async ({ filename, namespace, ...options }, session) => {
    const { stdin, terminal, signal } = session;
    const objects = await readDocuments(filename, stdin, signal);
    for (const object of objects) checkNamespace(object, namespace);
    const sources = filename.map((name) => (name === "-" ? "standard input" : name)).join(", ");
    checkHasWork(objects, sources);
    const { client, namespace: contextNamespace } = await session.connect(options, "host");
    const plan = await readPlan(client, objects, { namespace: namespace ?? contextNamespace, signal });
    printOutcome(terminal, options.output, { document: plan, text: planText(plan, terminal) });
    const passedOver = customKinds(objects.filter((object) => !isWholeObject(object)));
    if (passedOver.length > 0) {
      terminal.progress(`passed over, with whatever pods their controllers make: ${passedOver.join(", ")}`);
    }
    if (!plan.fits) throw new Failure("unfit", { object: sources, problem: shortfallOf(plan) });
  },
});

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

function customKinds(objects: readonly WrittenObject[]): string[] {
  const custom = objects.filter(
    ({ apiVersion }) => /^[^/]*\.[^/]*\//.test(apiVersion) && !/^[^/]*\.k8s\.io\//.test(apiVersion),
  );
  return [...new Set(custom.map(({ apiVersion, kind }) => `${kind} (${apiVersion})`))].sort();
}
