import type { WrittenObject } from "../shared/documents.ts";
import { objectText } from "../shared/output.ts";
import { selectorText } from "./placement.ts";

export interface ConversionFinding {
  readonly object: string;
  readonly field: string;
  readonly problem: string;
  readonly instead: string;
}

export type Gap = (field: string, problem: string, instead: string) => void;

/** Collects what a conversion has to tell, each thing once. */
export class ConversionReport {
  readonly #gaps = new Map<string, ConversionFinding>();
  readonly #steps = new Map<string, string>();

  get gaps(): readonly ConversionFinding[] {
    return [...this.#gaps.values()];
  }

  /** Steps that the user has to take once, beside `kubectl apply`. */
  get steps(): readonly string[] {
    return [...this.#steps.values()];
  }

  /** Returns the function that tells of fields of one object, or of what is in one of its fields. */
  about(object: string, within = ""): Gap {
    return (inner, problem, instead) => {
      const field = within + inner;
      this.#gaps.set(`${object} ${field} ${problem}`, { object, field, problem, instead });
    };
  }

  noKind(object: WrittenObject): void {
    this.about(nameOf(object))("kind", `there is no ${object.kind} here`, "nothing is written for it");
  }

  join(object: WrittenObject, labels: Readonly<Record<string, string>> = {}): void {
    const flag = Object.keys(labels).length === 0 ? "" : ` --labels ${selectorText({ matchLabels: labels })}`;
    this.step(`${nameOf(object)}: legation join ${object.metadata.name} --member-kubeconfig FILE${flag}`);
  }

  step(line: string): void {
    this.#steps.set(line, line);
  }
}

export function nameOf({ kind, metadata }: WrittenObject): string {
  const { namespace, name = `${metadata.generateName}*` } = metadata;
  return objectText(kind, { namespace, name });
}

/** Tells of a field of an object that members get as it is, so that it cannot differ between them. */
export function noDifference(path: string, field: string, gap: Gap): void {
  gap(field, `${path} cannot differ between members: members get the object as it is`, OBJECT_PER_GROUP);
}

/** The remedy for fields that differ between members. */
export const OBJECT_PER_GROUP =
  "write an object per group of members, each with its own name and legation.dev/clusters";
