import type { ClusterCondition } from "../../../api/cluster-status.ts";
import { type AnyObject, type DelegatedType, EXPRESSIONS_VALID } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import { type ObjectKey, objectKey, type Stored } from "../../../api/kubernetes.ts";
import { isOfServices } from "../../../api/service-fields.ts";
import type { ObjectMember } from "../../../copies/object-members.ts";
import { statusFromCopies, withoutGenerations } from "../../../copies/object-status.ts";
import { type CopyHealth, compileExpressions, type TypeExpressions } from "../../../copies/type-expressions.ts";
import { serviceStatusFrom } from "../../../copies/whole-services.ts";

/** A condition of a DelegatedType, without its times. */
export type ConditionState = Pick<ClusterCondition, "type" | "status" | "reason" | "message">;

/** Computes the statuses of a type's objects and the health of their copies, and keeps which expressions of the type fail. */
export class ObjectStatuses {
  readonly #spec: DelegatedType["spec"];
  readonly #compute: typeof statusFromCopies;
  readonly #expressions: TypeExpressions;
  readonly #onProblem: () => void;
  readonly #problems = new Map<ObjectKey, string>();

  /** `onProblem` is called when the condition may have changed. */
  constructor(type: DelegatedType, onProblem: () => void) {
    this.#spec = type.spec;
    this.#compute = isOfServices(type) ? serviceStatusFrom : statusFromCopies;
    this.#expressions = compileExpressions(type.spec);
    this.#onProblem = onProblem;
  }

  healthOf(copy: Stored<AnyObject>): CopyHealth {
    return this.#expressions.healthOf(copy);
  }

  /** Reports whether a copy has done work that another member would do again. */
  hasBegun(copy: Stored<AnyObject>): boolean {
    return this.#expressions.hasBegun(copy);
  }

  podCounts(object: Stored<AnyObject>): readonly number[] {
    return this.#expressions.podCounts(object);
  }

  /** Returns the status that an object has from its copies. Undefined while none has one. */
  of(
    object: Stored<AnyObject>,
    places: readonly ObjectMember[],
    { hasSubresource }: { readonly hasSubresource: boolean },
  ): JsonObject | undefined {
    const holders = places.filter(({ excluded }) => excluded === undefined);
    const merged = this.#compute(object, holders, this.#spec.sum);
    const ruled = merged && this.#expressions.statusOf(merged, holders);
    this.#note(objectKey(object.metadata), ruled?.problems ?? []);
    return ruled === undefined || hasSubresource ? ruled?.status : withoutGenerations(ruled.status);
  }

  forget(key: ObjectKey): void {
    this.#note(key, []);
  }

  /** Returns the condition ExpressionsValid. Undefined for a type without expressions. */
  condition(): ConditionState | undefined {
    const { health, status = [], queue } = this.#spec;
    if (health === undefined && status.length === 0 && queue?.begun === undefined && queue?.pods === undefined) {
      return undefined;
    }
    const type = EXPRESSIONS_VALID;
    const { problems } = this.#expressions;
    if (problems.length > 0) return { type, status: "False", reason: "NotCompiled", message: problems.join("; ") };
    const [first] = [...this.#problems].toSorted(([a], [b]) => (a < b ? -1 : 1));
    if (first === undefined) {
      return { type, status: "True", reason: "Evaluated", message: "all expressions compile and yield values" };
    }
    const others = this.#problems.size - 1;
    const more = others === 0 ? "" : `; and so for ${others} more`;
    return { type, status: "False", reason: "EvaluationFailed", message: `${first[0]}: ${first[1]}${more}` };
  }

  #note(key: ObjectKey, problems: readonly string[]): void {
    const problem = problems.length === 0 ? undefined : problems.join("; ");
    if (problem === this.#problems.get(key)) return;
    if (problem === undefined) this.#problems.delete(key);
    else this.#problems.set(key, problem);
    this.#onProblem();
  }
}
