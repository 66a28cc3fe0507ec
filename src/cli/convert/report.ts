import type { WrittenObject } from "../shared/documents.ts";
import { objectText } from "../shared/output.ts";
import { chosenClusters, selectorText } from "./clusters.ts";

interface ConversionFinding {
  readonly object: string;
  readonly field: string;
  readonly problem: string;
  readonly instead: string;
}

export type Gap = (field: string, problem: string, instead: string) => void;

export const LEFT_OUT = "it is left out of the output";

/** Collects what a conversion has to tell, each thing once. */
export class ConversionReport {
  readonly #gaps = new Map<string, ConversionFinding>();
  /** Steps that the user has to take once, beside `kubectl apply`. */
  readonly steps: Set<string> = new Set();

  get gaps(): readonly ConversionFinding[] {
    return [...this.#gaps.values()];
  }

  /** Returns the function that tells of fields of one object. */
  about(object: string): Gap {
    return (field, problem, instead) => {
      this.#gaps.set(`${object} ${field} ${problem}`, { object, field, problem, instead });
    };
  }

  noKind(object: WrittenObject): void {
    this.about(nameOf(object))("kind", `there is no ${object.kind} here`, "nothing is written for it");
  }

  join(object: WrittenObject, matchLabels: Readonly<Record<string, string>> = {}): void {
    const labels = selectorText(chosenClusters(undefined, [], [{ matchLabels }]).labels);
    const flag = labels === "" ? "" : ` --labels ${labels}`;
    this.steps.add(`${nameOf(object)}: legation join ${object.metadata.name} --member-kubeconfig FILE${flag}`);
  }
}

export function nameOf({ kind, metadata }: WrittenObject): string {
  const { namespace, name = `${metadata.generateName}*` } = metadata;
  return objectText(kind, { namespace, name });
}
