import { parsePlacement, problemsText } from "../../../api/annotations.ts";
import { delegationModeOf } from "../../../api/delegation-mode.ts";
import { CLUSTERS_ANNOTATION, DELEGATION_LABEL, GROUP } from "../../../api/keys.ts";
import type { Namespace, Stored } from "../../../api/kubernetes.ts";
import { counted } from "../../../api/wording.ts";
import { some } from "../../shared/output.ts";
import { didYouMean } from "../../shared/suggestion.ts";
import { type Finding, fail, forbidden, info, ok, warn } from "./finding.ts";

/**
 * Judges the labels and annotations by which namespaces are opted in. `members`: names of the Clusters; undefined if the user may not
 * see them. `areAll`: there are no other namespaces.
 */
export function namespaceFindings(
  namespaces: readonly Stored<Namespace>[],
  members: ReadonlySet<string> | undefined,
  areAll = true,
): Finding[] {
  const found = namespaces.flatMap((each) => ofNamespace(each, members));
  if (!areAll) {
    return [...namespaces.map(optedInFinding), ...found, forbidden("other namespaces: you may not list them")];
  }
  const optedIn = namespaces.filter(({ metadata }) => delegationModeOf(metadata.labels) !== undefined);
  const names = some(optedIn.map(({ metadata }) => metadata.name));
  const count =
    optedIn.length === 0
      ? warn("no namespace is opted in, so no pod is delegated", optIn("NAME"))
      : ok(`${counted(optedIn.length, "namespace")} opted in: ${names}`);
  return [count, ...found];
}

function optedInFinding({ metadata: { name, labels } }: Stored<Namespace>): Finding {
  const mode = delegationModeOf(labels);
  return mode === undefined
    ? info(`namespace ${name} is not opted in, so none of its pods is delegated`, optIn(name))
    : ok(`namespace ${name} is opted in: ${mode}`);
}

function optIn(name: string): string {
  return `kubectl label namespace ${name} ${DELEGATION_LABEL}=annotated`;
}

function ofNamespace({ metadata }: Stored<Namespace>, members: ReadonlySet<string> | undefined): Finding[] {
  const { name, labels, annotations = {} } = metadata;
  const subject = `namespace ${name}`;
  const mode = labels?.[DELEGATION_LABEL];
  const found: Finding[] = [];
  if (mode !== undefined && delegationModeOf(labels) === undefined) {
    const what = `${subject} has the label ${DELEGATION_LABEL}: ${JSON.stringify(mode)}, which is no mode: it is not opted in`;
    found.push(fail(what, `kubectl label --overwrite namespace ${name} ${DELEGATION_LABEL}=annotated`));
  }
  const own = Object.keys(annotations).filter((key) => key.startsWith(`${GROUP}/`));
  const remove = `kubectl annotate namespace ${name} ${own.map((key) => `${key}-`).join(" ")}`;
  const parsed = parsePlacement(annotations);
  if (!parsed.ok) return [...found, warn(`${subject}: ${problemsText(parsed)}`, remove)];
  if (own.length > 0 && mode === undefined) {
    found.push(
      warn(
        `${subject}: ${own.join(", ")} without the label ${DELEGATION_LABEL}, so without effect`,
        `${optIn(name)}, or \`${remove}\``,
      ),
    );
  }
  const known = [...(members ?? [])];
  const unknown = (parsed.placement.clusters ?? []).filter((cluster) => members?.has(cluster) === false);
  if (unknown.length > 0) {
    const hints = unknown.flatMap((cluster) => didYouMean(cluster, known) ?? []).map((hint) => ` (${hint})`);
    found.push(
      warn(
        `${subject}: ${CLUSTERS_ANNOTATION} names ${unknown.join(", ")}, and no such member has joined${hints.join("")}`,
        `kubectl annotate --overwrite namespace ${name} ${CLUSTERS_ANNOTATION}=NAMES`,
      ),
    );
  }
  return found;
}
