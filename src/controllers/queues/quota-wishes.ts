import { QUOTA_ANNOTATION, QUOTA_FLOOR_ANNOTATION, QUOTA_SHARE_ANNOTATION } from "../../api/keys.ts";
import type { ObjectMeta } from "../../api/kubernetes.ts";
import { type Amounts, parseAmounts } from "../../api/quantity.ts";

/** What the annotations of a ClusterQueue ask for. */
export interface QuotaWish {
  /** Part of each flavor's capacity, from 0 to 1. Absent: an equal part of what other queues leave. */
  readonly share?: number;
  /** Quotas never fall below these amounts. */
  readonly floor: Amounts;
}

export interface MisspeltWish {
  readonly problem: string;
}

const FOLLOW = "follow";
const SHARE = /^(100|\d{1,2}(\.\d+)?)%$/;

/** Returns undefined for a queue that does not ask. */
export function quotaWish({ annotations = {} }: Pick<ObjectMeta, "annotations">): QuotaWish | MisspeltWish | undefined {
  const wish = annotations[QUOTA_ANNOTATION];
  if (wish === undefined) return undefined;
  if (wish !== FOLLOW) return misspelt(QUOTA_ANNOTATION, wish, `write "${FOLLOW}", or remove it`);
  const share = annotations[QUOTA_SHARE_ANNOTATION];
  if (share !== undefined && !SHARE.test(share)) {
    return misspelt(QUOTA_SHARE_ANNOTATION, share, 'write a percentage from 0% to 100%, such as "80%"');
  }
  const written = annotations[QUOTA_FLOOR_ANNOTATION];
  const floor = written === undefined ? {} : floorOf(written);
  if (floor === undefined) {
    const remedy = 'write amounts by resource, such as "cpu=8,memory=32Gi"';
    return misspelt(QUOTA_FLOOR_ANNOTATION, written, remedy);
  }
  return { floor, ...(share === undefined ? {} : { share: Number.parseFloat(share) / 100 }) };
}

function floorOf(written: string): Amounts | undefined {
  const pairs = written.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
  const amounts = parseAmounts(Object.fromEntries(pairs.map(([resource = "", amount = ""]) => [resource, amount])));
  const isWhole = pairs.every(
    ([resource = "", , ...more]) => more.length === 0 && resource !== "" && (amounts[resource] ?? -1) >= 0,
  );
  return isWhole ? amounts : undefined;
}

function misspelt(annotation: string, value: string | undefined, remedy: string): MisspeltWish {
  return { problem: `the annotation ${annotation} is ${JSON.stringify(value)}; ${remedy}` };
}
