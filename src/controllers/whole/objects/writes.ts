import type { AnyObject } from "../../../api/delegated-type.ts";
import type { JsonObject } from "../../../api/json.ts";
import { CLUSTER_ANNOTATION, MEMBERS_ANNOTATION, WHOLE_KEY } from "../../../api/keys.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import type { CopiedKind } from "../../../copies/kind.ts";
import { withoutGenerations } from "../../../copies/object-status.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { SendPatch, WholeWrites } from "../adapter.ts";
import { wholeStatusPatch } from "../execute.ts";
import { isTaken, type PatchOutcome } from "../source-writer.ts";

// A definition may get a status subresource later.
const NO_SUBRESOURCE_FOR_MS = 10 * 60_000;

/** The writes of whole objects of one type, which need not have a status subresource. */
export class ObjectWrites implements WholeWrites<AnyObject, string | undefined, JsonObject> {
  readonly kind: CopiedKind<AnyObject>;
  readonly statusName = "the status";
  readonly #clock: Pick<Clock, "now">;
  /** The host's type was last seen with a status subresource. */
  hasSubresource = true;
  /** Until when the status is written as a field of the object, since the type has no subresource; epoch ms. */
  #noSubresourceUntil = 0;

  constructor(kind: CopiedKind<AnyObject>, clock: Pick<Clock, "now">) {
    this.kind = kind;
    this.#clock = clock;
  }

  recordOf(member: string | undefined): ReturnType<WholeWrites<AnyObject, string, JsonObject>["recordOf"]> {
    const message =
      member === undefined ? "queued again: the next flavor chooses a member" : `${member} has the object`;
    return { annotations: { [CLUSTER_ANNOTATION]: member ?? null }, message };
  }

  async writeStatus(object: Stored<AnyObject>, status: JsonObject, patch: SendPatch): Promise<PatchOutcome> {
    if (this.#clock.now() >= this.#noSubresourceUntil) {
      const outcome = await patch(wholeStatusPatch(object, status), { subresource: "status" });
      if (isTaken(outcome)) this.hasSubresource = true;
      if (outcome !== "NotFound") return outcome;
      this.#noSubresourceUntil = this.#clock.now() + NO_SUBRESOURCE_FOR_MS;
    }
    // A write that finds no object changes nothing.
    const outcome = await patch(wholeStatusPatch(object, withoutGenerations(status)), {});
    if (outcome === "NotFound") this.#noSubresourceUntil = 0;
    if (isTaken(outcome)) this.hasSubresource = false;
    return outcome;
  }

  marksOnRelease(keepsLabel: boolean): object {
    const labels = keepsLabel ? {} : { labels: { [WHOLE_KEY]: null } };
    return { ...labels, annotations: { [MEMBERS_ANNOTATION]: null } };
  }
}
