import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { followedKind } from "../../copies/objects.ts";
import type { FollowedObjects } from "../../scheduling/followed-objects.ts";
import { shortDigest } from "../copying/digests.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";
import { DependencyController } from "../dependencies/controller.ts";
import { FollowedStatuses } from "./statuses.ts";

export interface FollowerOptions extends PodCopierOptions {
  readonly type: Stored<DelegatedType>;
  readonly objects: FollowedObjects;
  /** Counts and failures of the type may have changed. */
  readonly onChange: () => void;
}

/** Gives members the objects of one type that pods name. Of a type that confines pods, the status of a copy comes back. */
export class Follower {
  readonly objects: FollowedObjects;
  readonly copies: DependencyController<AnyObject>;
  readonly #statuses: FollowedStatuses | undefined;

  constructor(options: FollowerOptions) {
    const { type, objects, onChange } = options;
    this.objects = objects;
    const kind = followedKind(type, shortDigest);
    this.copies = new DependencyController({
      ...options,
      family: { name: "followed-objects", title: objects.type, kinds: [kind], of: objects.of },
      onChange: (name) => {
        this.#statuses?.enqueue(name);
        onChange();
      },
      onState: onChange,
    });
    const confines = type.spec.follows?.confines === true;
    this.#statuses = confines ? new FollowedStatuses(kind, { ...options, copies: this.copies }) : undefined;
  }

  async stop(): Promise<void> {
    await this.#statuses?.stop();
    await this.copies.stop();
  }
}
