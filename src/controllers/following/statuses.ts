import { defined } from "../../api/defined.ts";
import type { AnyObject } from "../../api/delegated-type.ts";
import { type JsonObject, jsonEqual } from "../../api/json.ts";
import { type ObjectKey, objectKey, objectRef } from "../../api/kubernetes.ts";
import type { FollowedRules } from "../../copies/followed-rules.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import { statusFromCopies } from "../../copies/object-status.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { Controller } from "../../runtime/controller.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { ObjectName } from "../copying/model.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";
import type { DependencyController } from "../dependencies/controller.ts";
import { Executor } from "../whole/execute.ts";
import type { Action, Observed as Known, WholeDecision } from "../whole/model.ts";
import { ObjectWrites } from "../whole/objects/writes.ts";
import { show } from "../whole/phases.ts";

export interface FollowedStatusesOptions extends PodCopierOptions {
  readonly copies: Pick<DependencyController<AnyObject>, "sourceOf" | "userOf" | "isNamed">;
  readonly rules: Pick<FollowedRules, "status">;
}

interface Observed extends Known<AnyObject, JsonObject> {
  /** The status that the host's object is to have. Undefined if it stays as it is. */
  readonly status?: JsonObject;
}

type StatusAction = Action<AnyObject, never, JsonObject>;

// Controllers of a member may write a status many times a second.
const STATUS_PAUSE_MS = 1_000;

/** Writes the status that an object has in the member of its pods to the host's object. */
export class FollowedStatuses {
  readonly #options: FollowedStatusesOptions;
  readonly #writes: ObjectWrites;
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #sent = new Map<ObjectKey, NonNullable<Observed["sent"]>>();
  readonly #loop: Controller<ObjectKey, Observed, StatusAction>;

  constructor(kind: CopiedKind<AnyObject>, options: FollowedStatusesOptions) {
    this.#options = options;
    const { clock } = options;
    const writes = new ObjectWrites(kind, clock);
    this.#writes = writes;
    this.#guard = new WriteGuard({ clock });
    const executor = new Executor<AnyObject, never, JsonObject>(writes, {
      ...options,
      guard: this.#guard,
      onStatus: (key, shown) => this.#sent.set(key, { at: clock.now(), shown }),
      isTaken: () => Promise.resolve(true),
    });
    this.#loop = new Controller<ObjectKey, Observed, StatusAction>(
      {
        name: "followed-statuses",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => executor.execute(action, context),
      },
      options,
    );
  }

  enqueue({ namespace, name }: ObjectName): void {
    this.#loop.enqueue(objectKey({ namespace, name }));
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  #observe(key: ObjectKey): Observed | undefined {
    const { copies, proxies, rules } = this.#options;
    const { namespace = "", name } = objectRef(key);
    const { kind } = this.#writes.kind.resource;
    const object = { kind, namespace, name };
    const source = copies.sourceOf(object);
    if (source.state !== "present") {
      if (source.state === "missing") {
        this.#guard.forget(key);
        this.#sent.delete(key);
      }
      return undefined;
    }
    const { member, copy } = copies.userOf(object) ?? {};
    const isOfObject = copy !== undefined && ownerOf(copy)?.uid === source.object.metadata.uid;
    const ofCopy =
      member === undefined || !isOfObject
        ? undefined
        : statusFromCopies(source.object, [{ member: member.name, copy, inStep: true, isLost: member.lost }]);
    const status =
      rules.status === undefined
        ? ofCopy
        : rules.status(source.object, ofCopy, {
            proxy: (podName) => proxies.get(objectKey({ namespace, name: podName })),
            isNamed: ofCopy !== undefined || copies.isNamed(object),
          });
    const [sent, held] = [this.#sent.get(key), this.#guard.of(key)];
    return {
      object: source.object,
      ...defined({ status, sent, held }),
    };
  }
}

function decide(observed: Observed, now: number): WholeDecision<AnyObject, never, JsonObject> {
  const { object, status, sent } = observed;
  if (status === undefined || jsonEqual(status, object.status)) return { actions: [], outcome: "InStep" };
  const dueAt = sent === undefined ? now : sent.at + STATUS_PAUSE_MS;
  return show(observed, { shown: status, dueAt }, now);
}
