import { z } from 'zod'
import { ConfigError } from './config-error.js'

/** A setting that is a whole number, within bounds. */
export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`)

/**
 * Reads settings as a schema has them.
 *
 * @throws ConfigError naming the first that does not hold.
 */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  set: Record<string, unknown>,
): z.output<Schema> {
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new ConfigError(`${issue?.path.join('.')}: ${issue?.message}`)
}
