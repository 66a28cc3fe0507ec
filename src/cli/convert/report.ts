import type { WrittenObject } from "../shared/documents.ts";

/** A field of the input that the output does not carry over. */
export interface Finding {
  /** The object as the input has it: `FederatedDeployment shop/web`. */
  readonly object: string;
  readonly field: string;
  readonly problem: string;
  /** The remedy. */
  readonly instead: string;
}

/** Collects what a conversion has to tell, each thing once. */
export class Report {
  readonly #gaps = new Map<string, Finding>();
  readonly #steps = new Map<string, string>();

  /** Fields that have no equal. */
  get gaps(): readonly Finding[] {
    return [...this.#gaps.values()];
  }

  /** Steps that the user has to take once, beside `kubectl apply`. */
  get steps(): readonly string[] {
    return [...this.#steps.values()];
  }

  gap(object: string, field: string, problem: string, instead: string): void {
    this.#gaps.set(`${object} ${field} ${problem}`, { object, field, problem, instead });
  }

  step(line: string): void {
    this.#steps.set(line, line);
  }
}

/** Names an object in findings. */
export function nameOf({ kind, metadata }: WrittenObject): string {
  const { namespace, name = `${metadata.generateName}*` } = metadata;
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
