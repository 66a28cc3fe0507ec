import { z } from "zod";
import { CLUSTER_NAME_MAX } from "../../api/cluster.ts";
import { GROUP } from "../../api/keys.ts";

const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/;
const LABEL_NAME = /^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_LABEL = 63;

/** A Cluster's name: part of a node's name and a label value, so what both allow. */
export const memberName: z.ZodType<string> = z
  .string()
  .max(CLUSTER_NAME_MAX, { error: `is longer than ${CLUSTER_NAME_MAX} characters` })
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, {
    error: "must be small letters, digits and '-', with a letter or digit first and last; write e.g. west-1",
  });

/** `region=eu,tier=gold` as labels; every problem is named. */
export const labelList: z.ZodType<Readonly<Record<string, string>>, string> = z.string().transform((text, context) => {
  const labels: Record<string, string> = {};
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const equals = item.indexOf("=");
    const key = item.slice(0, equals);
    const value = item.slice(equals + 1);
    const problem = equals < 1 ? "is not key=value; write e.g. region=eu" : labelProblem(key, value, labels);
    if (problem === undefined) labels[key] = value;
    else context.addIssue({ code: "custom", message: `${JSON.stringify(item)} ${problem}` });
  }
  return labels;
});

function labelProblem(key: string, value: string, others: Readonly<Record<string, string>>): string | undefined {
  const [name = "", prefix] = key.split("/").reverse();
  if (prefix === GROUP || prefix?.endsWith(`.${GROUP}`)) return `uses the prefix ${prefix}, which is Legation's own`;
  if (key.split("/").length > 2 || !LABEL_NAME.test(name) || name.length > LONGEST_LABEL) {
    return "has a key that is not a label's: letters, digits, '-', '_' and '.', with an optional dns.prefix/";
  }
  if (prefix !== undefined && (!DNS_SUBDOMAIN.test(prefix) || prefix.length > 253))
    return "has a prefix that is not a DNS name";
  if (!LABEL_VALUE.test(value) || value.length > LONGEST_LABEL) {
    return "has a value that is not a label's: at most 63 letters, digits, '-', '_' and '.'";
  }
  return Object.hasOwn(others, key) ? "is given twice" : undefined;
}
