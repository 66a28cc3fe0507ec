/**
 * The controllers of objects that members get whole, by family: an entry for each adapter of `src/controllers/whole`. The names are
 * those in logs and metrics. Commands that take a member or Legation away do not compile without a new family.
 */
export const WHOLE_FAMILIES = {
  jobs: { objects: "whole-jobs", copies: "whole-job-copies" },
  types: { objects: "whole-objects", copies: "whole-object-copies" },
} as const;

export type WholeFamily = keyof typeof WHOLE_FAMILIES;
