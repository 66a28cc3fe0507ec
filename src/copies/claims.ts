import { z } from "zod";
import { defined } from "../api/defined.ts";
import { isToolsLabel } from "../api/delivery-tools.ts";
import {
  CLAIM_STATUS_ANNOTATION,
  CLUSTER_ANNOTATION,
  COPY_LABEL,
  COPY_LABEL_VALUE,
  HOST_LABEL,
  OWNER_ANNOTATION,
} from "../api/keys.ts";
import type { PersistentVolumeClaim, Pod, Stored } from "../api/kubernetes.ts";
import { parseAmounts } from "../api/quantity.ts";
import { structuredTextReader } from "../api/structured-text.ts";
import { persistentVolumeClaims } from "../kube/resources.ts";
import { type HostIdentity, ownerIn, ownerOf } from "../pods/delegate.ts";
import { copiedLabels } from "./copy-metadata.ts";

export type StorageClasses = Readonly<Record<string, string>>;

/** The part of a member's claim that the host's annotation shows. */
export interface ClaimStatus {
  readonly uid: string;
  readonly phase: string;
  readonly capacity?: string;
  readonly volumeName?: string;
  /** Why it does not grow to the host's size. */
  readonly notGrown?: string;
}

const STORAGE = "storage";
// Deprecated annotation that Kubernetes prefers to the field (`GetPersistentVolumeClaimClass`).
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/**
 * Returns the claims that a pod names, each once. Claims of ephemeral volumes are left out: each cluster makes its
 * own.
 */
export function claimNames({ spec }: Pod): string[] {
  const names = (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
  return names.length < 2 ? names : [...new Set(names)];
}

export function clusterOf({ metadata }: Stored<PersistentVolumeClaim>): string | undefined {
  return metadata.annotations?.[CLUSTER_ANNOTATION];
}

/** Returns why no member can have a claim for this one, and what to write instead. */
export function claimProblem({ metadata, spec }: Stored<PersistentVolumeClaim>): string | undefined {
  const claim = `PersistentVolumeClaim ${metadata.name}`;
  // A claim that is in a member stays there, whatever the host's provisioner did since.
  if (metadata.annotations?.[CLUSTER_ANNOTATION] !== undefined) return undefined;
  if (spec?.volumeName !== undefined && spec.volumeName !== "") {
    return (
      `${claim}: spec.volumeName: it is bound to volume ${spec.volumeName} of the host, which no member can mount; write a claim ` +
      "of a storage class that binds nothing on the host (volumeBindingMode: WaitForFirstConsumer, or a name that only " +
      'members know), or keep the pod on the host with legation.dev/delegate: "false"'
    );
  }
  const source = spec?.dataSourceRef === undefined ? spec?.dataSource && "dataSource" : "dataSourceRef";
  if (source !== undefined) {
    return `${claim}: spec.${source}: what it names is on the host, and no member has it; write a claim without it, and have a pod fill it`;
  }
  return undefined;
}

/** Returns the claim to create in a member, without annotations of the host. */
export function toMemberClaim(
  claim: Stored<PersistentVolumeClaim>,
  host: HostIdentity,
  classes: StorageClasses = {},
): PersistentVolumeClaim {
  const { name, namespace = "", labels } = claim.metadata;
  const { accessModes, resources, volumeMode, selector, volumeAttributesClassName } = claim.spec ?? {};
  const storageClassName = classIn(classOf(claim), classes);
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      namespace,
      labels: { ...copiedLabels(labels), [HOST_LABEL]: host.id, [COPY_LABEL]: COPY_LABEL_VALUE },
      annotations: ownerAnnotation(claim, host),
    },
    spec: {
      ...defined({ accessModes, resources, volumeMode, selector, volumeAttributesClassName, storageClassName }),
    },
  };
}

function classOf({ metadata, spec }: Stored<PersistentVolumeClaim>): string | undefined {
  return metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName;
}

/** Maps the class. None means the member's default; an empty one no provisioning, unless mapped. */
function classIn(name: string | undefined, classes: StorageClasses): string | undefined {
  return name === undefined || !Object.hasOwn(classes, name) ? name : classes[name];
}

/** Returns the host's requested size if the member's is smaller. Claims never shrink. */
export function wantedSize(claim: PersistentVolumeClaim, there: PersistentVolumeClaim): string | undefined {
  const wanted = claim.spec?.resources?.requests?.[STORAGE];
  const asked = (of: PersistentVolumeClaim): number => parseAmounts(of.spec?.resources?.requests)[STORAGE] ?? 0;
  return asked(claim) > asked(there) ? wanted : undefined;
}

/** Returns the patch of the host's claim that reports the member's. */
export function claimStatus(
  { metadata, spec, status }: Stored<PersistentVolumeClaim>,
  notGrown: string | undefined,
): string {
  const capacity = status?.capacity?.[STORAGE];
  const said: ClaimStatus = {
    uid: metadata.uid,
    phase: status?.phase ?? "Pending",
    ...(capacity === undefined ? {} : { capacity }),
    ...(spec?.volumeName === undefined ? {} : { volumeName: spec.volumeName }),
    ...(notGrown === undefined ? {} : { notGrown }),
  };
  return JSON.stringify(said);
}

const writtenStatus = z.object({ uid: z.string() });
const readStatus = structuredTextReader(writtenStatus);

/**
 * Returns the uid of the host's claim behind a member's: from its owner annotation, or else from the host's status
 * annotation.
 */
export function claimOwner(
  there: Stored<PersistentVolumeClaim>,
  claim: Stored<PersistentVolumeClaim> | undefined,
): string | undefined {
  const owner = ownerOf(there)?.uid;
  if (owner !== undefined || claim === undefined) return owner;
  return seenUid(claim) === there.metadata.uid ? claim.metadata.uid : undefined;
}

/** Returns the uid of the member's claim that was last seen. */
export function seenUid({ metadata }: Stored<PersistentVolumeClaim>): string | undefined {
  const status = readStatus(metadata.annotations?.[CLAIM_STATUS_ANNOTATION] ?? "{}");
  return status.ok ? status.value.uid : undefined;
}

/** Returns the labels that an earlier version copied to the member's claim, and by which a tool there may delete it. */
export function labelsOfTools(there: PersistentVolumeClaim, claim: PersistentVolumeClaim): Record<string, null> {
  const labels = Object.entries(claim.metadata?.labels ?? {});
  const isLeft = (key: string, value: string): boolean =>
    isToolsLabel(key, value, "copy") && there.metadata?.labels?.[key] === value;
  return Object.fromEntries(labels.flatMap(([key, value]) => (isLeft(key, value) ? [[key, null]] : [])));
}

export function ownerAnnotation(
  { metadata }: Stored<PersistentVolumeClaim>,
  host: HostIdentity,
): Record<string, string> {
  return { [OWNER_ANNOTATION]: JSON.stringify(ownerIn(host, persistentVolumeClaims, metadata)) };
}

export function wasSeen({ metadata }: Stored<PersistentVolumeClaim>): boolean {
  return metadata.annotations?.[CLAIM_STATUS_ANNOTATION] !== undefined;
}
