import type { DelegatedType } from "../../api/delegated-type.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { CONTROLLER, NOT_REPORTED } from "./members.ts";
import type { Trouble } from "./model.ts";

/** A condition of a DelegatedType that is not True. */
interface UnmetCondition {
  readonly status: string;
  readonly trouble: Trouble;
}

/** Returns what is wrong with a DelegatedType by its conditions, of which all are True when it works. */
export function unmetConditions({ metadata: { name }, status }: Stored<DelegatedType>): UnmetCondition[] {
  const subject = `DelegatedType ${name}`;
  const remedy = `kubectl describe delegatedtypes.legation.dev ${name}`;
  const { conditions = [] } = status ?? {};
  if (conditions.length === 0) {
    return [{ status: "Unknown", trouble: { what: `${subject}: ${NOT_REPORTED}`, remedy } }];
  }
  return conditions
    .filter((condition) => condition.status !== "True")
    .map(({ type, status: is, message, lastTransitionTime: since }) => {
      return {
        status: is,
        trouble: { what: `${subject}: ${type} is ${is}: ${message}`, since, by: CONTROLLER, remedy },
      };
    });
}
