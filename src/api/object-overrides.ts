import { type DelegatedType, keptFields } from "./delegated-type.ts";
import { applyPatch } from "./json-patch.ts";
import { OVERRIDES_ANNOTATION } from "./keys.ts";
import { type Override, overrideApplies, parseObjectOverrides } from "./overrides.ts";
import { isOfServices, withoutAllocated } from "./service-fields.ts";

interface Annotated {
  readonly [field: string]: unknown;
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

interface LabelledMember {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** An object as a member is given it, or why an override does not fit. */
export type Overridden<T> = { readonly object: T } | { readonly problem: string };

/** Returns the whole object with its author's overrides for a member. Those of namespaces are for pods. */
export function overrideObject<T extends Pick<Annotated, "metadata">>(
  object: T,
  member: LabelledMember,
): Overridden<T> {
  const overrides = overridesOf(object);
  if (overrides === undefined) return { object };
  return "problem" in overrides
    ? { problem: `${OVERRIDES_ANNOTATION}: ${overrides.problem}` }
    : withOverrides(object, overrides, member);
}

/** Returns why admission refuses the overrides of an object of the type, as far as that is known without members. */
export function objectOverrideProblems(object: Annotated, type: DelegatedType): string[] {
  const overrides = overridesOf(object);
  if (overrides === undefined) return [];
  if ("problem" in overrides) return [`annotation ${OVERRIDES_ANNOTATION}: ${overrides.problem}`];
  if (type.spec.group === "rbac.authorization.k8s.io") {
    return [
      `annotation ${OVERRIDES_ANNOTATION}: the API server judges the rights of a ${type.spec.kind} as they are written; ` +
        "remove it, and write an object per group of members, each with its own name and legation.dev/clusters",
    ];
  }
  const kept = overrides.flatMap((override, index) => keptProblems(override, index, type));
  return kept.length > 0 ? kept : misfits(isOfServices(type) ? withoutAllocated(object) : object, overrides);
}

function overridesOf({ metadata }: Pick<Annotated, "metadata">): ReturnType<typeof parseObjectOverrides> | undefined {
  const text = metadata.annotations?.[OVERRIDES_ANNOTATION];
  return text === undefined ? undefined : parseObjectOverrides(text);
}

/** Returns the operations that write fields which copies lack, or which no API server stores. */
function keptProblems({ patch }: Override, index: number, type: DelegatedType): string[] {
  const { name = "" } = type.metadata;
  return patch.flatMap((operation, number) => {
    if (operation.op === "test") return [];
    const where = `annotation ${OVERRIDES_ANNOTATION}: [${index}].patch[${number}]`;
    const paths = operation.op === "move" ? [operation.from, operation.path] : [operation.path];
    return paths.flatMap((path) => {
      if (name === "secrets" && isIn(path, "/stringData")) {
        return [`${where}: "${path}": no cluster stores stringData; write the value in base64 inside /data/`];
      }
      if (isOfServices(type) && isIn(path, "/spec/externalIPs")) {
        return [
          `${where}: "${path}": members get no externalIPs, by which a Service takes traffic of others; remove the operation`,
        ];
      }
      const field = keptFields(type).find((pointer) => isIn(path, pointer));
      return field === undefined
        ? []
        : [`${where}: "${path}": DelegatedType ${name} leaves ${field} out of copies; remove the operation`];
    });
  });
}

/** Reports whether a path is a field, or inside it. `*` stands for any item or key. */
function isIn(path: string, field: string): boolean {
  const segments = path.split("/");
  return field.split("/").every((name, index) => name === segments[index] || (name === "*" && index < segments.length));
}

/** Tries the overrides before the first that depends on labels of Clusters: in each member by name, or for all members at once. */
function misfits(object: Annotated, overrides: readonly Override[]): string[] {
  const firstBySelector = overrides.findIndex(({ selector }) => selector !== undefined);
  const known = firstBySelector < 0 ? overrides : overrides.slice(0, firstBySelector);
  const named = [...new Set(known.flatMap(({ clusters = [] }) => clusters))];
  const problems = (named.length === 0 ? [""] : named).flatMap((name) => {
    const overridden = withOverrides(object, known, { name, labels: {} });
    return "problem" in overridden ? [`annotation ${overridden.problem}`] : [];
  });
  return [...new Set(problems)];
}

function withOverrides<T>(object: T, overrides: readonly Override[], member: LabelledMember): Overridden<T> {
  let overridden = object;
  for (const [index, override] of overrides.entries()) {
    if (!overrideApplies(override, member)) continue;
    const patched = applyPatch(overridden, override.patch, "object");
    if ("problem" in patched) return { problem: `${OVERRIDES_ANNOTATION}: [${index}].${patched.problem}` };
    overridden = patched.document;
  }
  return { object: overridden };
}
