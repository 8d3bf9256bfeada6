import { join } from 'node:path'
import * as z from 'zod'
import type { KnownIdentities } from '../client/resolve.js'
import { UserJson, userFolder } from './user-files.js'

/** By genesis, then by name. */
const trees = z.record(z.string(), z.record(z.string(), z.string()))

export interface StoredIdentities extends KnownIdentities {
  get(name: string): string | undefined
  /**
   * Stores the key of a name.
   *
   * @throws CommandError (`usage`) if the file cannot be written.
   */
  set(name: string, identityKey: string): Promise<void>
}

/**
 * The identity keys that names of a tree had when they were first resolved, in `known-identities.json` of the user: BRC-174
 * section 7.4. A changed key replaces the old one only if the user says so.
 *
 * @throws CommandError (`usage`) if the file exists and cannot be read: a changed key would go unnoticed.
 */
export async function openKnownIdentities(
  env: Record<string, string | undefined>,
  genesis: string,
): Promise<StoredIdentities> {
  const file = new UserJson(join(userFolder(env, 'XDG_CONFIG_HOME'), 'known-identities.json'), trees)
  const namesIn = (held: z.output<typeof trees> = {}) => new Map(Object.entries(held)).get(genesis) ?? {}
  const names = new Map(Object.entries(namesIn(await file.read())))
  return {
    get: (name) => names.get(name),
    keys: () => names.keys(),
    set: (name, identityKey) =>
      file.change((held) => ({ ...held, [genesis]: { ...namesIn(held), [name]: identityKey } })),
  }
}
