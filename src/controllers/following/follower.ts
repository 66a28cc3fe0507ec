import { defined } from "../../api/defined.ts";
import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { FOLLOWED_RULES } from "../../copies/followed-rules.ts";
import { followedKind } from "../../copies/objects.ts";
import type { FollowedObjects } from "../../scheduling/followed-objects.ts";
import type { GroupName } from "../../scheduling/groups.ts";
import { shortDigest } from "../copying/digests.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";
import { DependencyController } from "../dependencies/controller.ts";
import type { MemberDevices } from "./member-devices.ts";
import { FollowedStatuses } from "./statuses.ts";

export interface FollowerOptions extends PodCopierOptions {
  readonly type: Stored<DelegatedType>;
  readonly objects: FollowedObjects;
  readonly devices: Pick<MemberDevices, "preparationFor">;
  /** Returns the group of a pod by the objects of all types. */
  readonly groupOf: (pod: Pod) => GroupName | undefined;
  /** Counts and failures of the type may have changed. */
  readonly onChange: () => void;
}

/** Gives members the objects of one type that pods name. Of a type that confines pods, the status of a copy comes back. */
export class Follower {
  readonly objects: FollowedObjects;
  readonly copies: DependencyController<AnyObject>;
  /** Pods get devices of members by its objects. */
  readonly usesDevices: boolean;
  readonly #statuses: FollowedStatuses | undefined;

  constructor(options: FollowerOptions) {
    const { type, objects, devices, groupOf, onChange } = options;
    this.objects = objects;
    const rules = FOLLOWED_RULES[objects.type] ?? {};
    const { obstacle, deviceClasses } = rules;
    this.usesDevices = deviceClasses !== undefined;
    const kind = followedKind(type, shortDigest);
    const confines = type.spec.follows?.confines === true;
    this.copies = new DependencyController({
      ...options,
      family: {
        name: "followed-objects",
        title: objects.type,
        kinds: [kind],
        of: objects.givenFor,
        ...(confines ? { groupOf: (pod) => groupOf(pod)?.id } : {}),
        ...defined({ obstacle }),
        ...(deviceClasses === undefined
          ? {}
          : {
              preparationIn: (member, object) =>
                devices.preparationFor(member, `${type.spec.kind} ${object.metadata.name}`, deviceClasses(object)),
            }),
      },
      onChange: (name) => {
        this.#statuses?.enqueue(name);
        onChange();
      },
      onState: onChange,
    });
    this.#statuses = confines ? new FollowedStatuses(kind, { ...options, copies: this.copies, rules }) : undefined;
  }

  async stop(): Promise<void> {
    await this.#statuses?.stop();
    await this.copies.stop();
  }
}
