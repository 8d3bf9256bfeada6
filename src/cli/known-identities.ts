import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import type { KnownIdentities } from '../client/resolve.js'
import { CommandError } from './command.js'
import { changeUserJson, userFolder } from './user-files.js'

const file = z.record(z.string(), z.record(z.string(), z.string()))

/**
 * The identity keys that names of a tree had when they were first resolved, in a file of the user: BRC-174
 * section 7.4. A changed key replaces the old one only if the user says so.
 */
export class KnownIdentityFile implements KnownIdentities {
  private constructor(
    readonly path: string,
    private readonly genesis: string,
    /** By genesis, then by name. */
    private readonly trees: z.output<typeof file>,
  ) {}

  /**
   * `known-identities.json` in the folder of `known-trees.json`.
   *
   * @throws CommandError (`usage`) if the file exists and cannot be read: a changed key would go unnoticed.
   */
  static async open(env: Record<string, string | undefined>, genesis: string): Promise<KnownIdentityFile> {
    const path = join(userFolder(env, 'XDG_CONFIG_HOME'), 'known-identities.json')
    return new KnownIdentityFile(path, genesis, await read(path))
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
    try {
      await changeUserJson(this.path, async () => {
        const trees = await read(this.path)
        const names = Object.hasOwn(trees, this.genesis) ? trees[this.genesis] : {}
        return { ...trees, [this.genesis]: { ...names, [name]: identityKey } }
      })
    } catch (cause) {
      if (cause instanceof CommandError) throw cause
      throw new CommandError(`cannot write ${this.path}: ${messageOf(cause)}`, { cause, exit: 'usage' })
    }
  }

  private get names(): Record<string, string> {
    return Object.hasOwn(this.trees, this.genesis) ? (this.trees[this.genesis] ?? {}) : {}
  }
}

async function read(path: string): Promise<z.output<typeof file>> {
  try {
    return file.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CommandError(`${path} is damaged or cannot be read: correct it or remove it`, {
      cause,
      exit: 'usage',
    })
  }
}
