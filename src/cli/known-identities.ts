import { join } from 'node:path'
import * as z from 'zod'
import type { KnownIdentities } from '../client/resolve.js'
import { UserJson, userFolder } from './user-files.js'

/** By genesis, then by name. */
const trees = z.record(z.string(), z.record(z.string(), z.string()))
type Trees = z.output<typeof trees>

/**
 * The identity keys that names of a tree had when they were first resolved, in a file of the user: BRC-174
 * section 7.4. A changed key replaces the old one only if the user says so.
 */
export class KnownIdentityFile implements KnownIdentities {
  private constructor(
    private readonly file: UserJson<Trees>,
    private readonly genesis: string,
    private readonly trees: Trees,
  ) {}

  /**
   * `known-identities.json` in the folder of `known-trees.json`.
   *
   * @throws CommandError (`usage`) if the file exists and cannot be read: a changed key would go unnoticed.
   */
  static async open(env: Record<string, string | undefined>, genesis: string): Promise<KnownIdentityFile> {
    const file = new UserJson(join(userFolder(env, 'XDG_CONFIG_HOME'), 'known-identities.json'), trees)
    return new KnownIdentityFile(file, genesis, (await file.read()) ?? {})
  }

  get(name: string): string | undefined {
    const { names } = this
    return Object.hasOwn(names, name) ? names[name] : undefined
  }

  keys(): string[] {
    return Object.keys(this.names)
  }

  /**
   * Stores the key of a name.
   *
   * @throws CommandError (`usage`) if the file cannot be written.
   */
  async set(name: string, identityKey: string): Promise<void> {
    await this.file.change((trees = {}) => {
      const names = Object.hasOwn(trees, this.genesis) ? trees[this.genesis] : {}
      return { ...trees, [this.genesis]: { ...names, [name]: identityKey } }
    })
  }

  private get names(): Record<string, string> {
    return Object.hasOwn(this.trees, this.genesis) ? (this.trees[this.genesis] ?? {}) : {}
  }
}
