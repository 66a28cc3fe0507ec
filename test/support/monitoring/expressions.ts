import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "../legation/cli.ts";

/** An expression that Prometheus evaluates. */
export interface Expression {
  /** `alert NAME` or `panel TITLE`. */
  readonly of: string;
  readonly expr: string;
}

/** The folder with the rules, their tests and the dashboard. */
export const MONITORING: string = join(ROOT, "examples", "monitoring");

const rules = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
});
const dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).optional() })),
});

/** Returns the series behind alerts and panels: alerts without their thresholds, panels for all clusters. */
export function expressions(): Expression[] {
  const alerts = rules.parse(parse(readFileSync(join(MONITORING, "alerts.yaml"), "utf8")));
  const { panels } = dashboard.parse(JSON.parse(readFileSync(join(MONITORING, "dashboard.json"), "utf8")));
  return [
    ...alerts.groups.flatMap((group) =>
      group.rules.map(({ alert, expr }) => ({
        of: `alert ${alert}`,
        expr: expr.trim().replace(/\s(?:[<>]|==)\s[\d.]+$/, ""),
      })),
    ),
    ...panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        of: `panel ${title}`,
        expr: expr.replaceAll("$cluster", ".*").replaceAll("$__rate_interval", "30s"),
      })),
    ),
  ];
}
