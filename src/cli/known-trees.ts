import { join } from 'node:path'
import { Mutex } from 'async-mutex'
import * as z from 'zod'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type ExpectedDeployment, type ServerDeployment, treeDifference } from '../mining/tree-difference.js'
import { jsonOfTree, treeJson, treeOfJson } from '../mining/tree-json.js'
import type { Config } from '../server/config/config.js'
import { cut } from '../server/telemetry/public-text.js'
import { usageError } from './command.js'
import type { CommandOutput } from './output.js'
import { UserJson, userFolder } from './user-files.js'

const trees = z.record(z.string(), treeJson)

/**
 * The trees that servers named when they were first asked, in a file of the user. A server that later names another tree is
 * not trusted: trust on first use, as SSH does with host keys.
 *
 * The file is replaced by a rename, so a reader always finds a complete one. Two commands that meet a server for the first time
 * at the same moment both announce it.
 */
export class KnownTrees {
  readonly file: UserJson<z.output<typeof trees>>
  private readonly writing = new Mutex()

  /** `$XDG_CONFIG_HOME/minetree/known-trees.json`, or the same below `~/.config`. Does not read it yet. */
  constructor(env: Record<string, string | undefined>) {
    const path = join(userFolder(env, 'XDG_CONFIG_HOME'), 'known-trees.json')
    this.file = new UserJson(path, trees, 'correct it or remove it, or set GENESIS')
  }

  /**
   * The tree that a server named first; undefined if none is remembered.
   *
   * @throws CommandError (`usage`) if the file exists but cannot be read or is invalid: continuing would trust every server
   * again. MiningError (`NEWER_COVENANT`) if a later release has stored rules that this one does not know.
   */
  async treeOf(url: string): Promise<ServerDeployment | undefined> {
    const entries = (await this.file.read()) ?? {}
    const key = keyOf(url)
    const found = Object.hasOwn(entries, key) ? entries[key] : undefined
    return found && treeOfJson(found, { says: `${this.file.path} has` })
  }

  /**
   * Compares the tree of a server with the one that it named first. A server on this machine is the user's own, and trusted.
   * The first answer of any other is remembered, with a note that shows the genesis and the file.
   *
   * @param asked.url The server.
   * @throws CommandError (`usage`) if the server names another tree than the one remembered, or the file cannot be read.
   */
  async trust(asked: { url: string; said: ServerDeployment; output: CommandOutput }): Promise<void> {
    const { url, said } = asked
    if (isLoopback(url)) return
    await this.writing.runExclusive(async () => {
      if (!(await this.isKnown(url, said))) await this.trustFirst(asked)
    })
  }

  /** Whether a server is remembered. @throws CommandError (`usage`) if it names another tree than the one remembered. */
  async isKnown(url: string, said: ServerDeployment): Promise<boolean> {
    const known = await this.treeOf(url)
    const difference = known && treeDifference(known, said)
    if (difference === undefined) return known !== undefined
    const [before, now] = [difference.expected, difference.actual].map((value) => cut(String(value), 80))
    throw usageError(
      `${url} names ${difference.setting} ${now}, and named ${before} before: set GENESIS or --genesis to the right tree, or remove ${keyOf(url)} from ${this.file.path}`,
    )
  }

  private async trustFirst({ url, said, output }: Parameters<KnownTrees['trust']>[0]): Promise<void> {
    const genesis = formatOutpoint(said.deployment.genesis)
    try {
      await this.file.change((held) => ({ ...held, [keyOf(url)]: jsonOfTree(said) }))
    } catch (error) {
      // A read-only home is no reason to refuse: there is no remembered tree yet to contradict.
      const reason = messageOf(error)
      output.warn(
        `trusting ${url} for the genesis ${genesis} this time only, because it cannot be remembered: ${reason}; set GENESIS`,
      )
      return
    }
    output.note(`trusting ${url} for the genesis ${genesis} from now on: remembered in ${this.file.path}`)
  }
}

/**
 * The tree in the settings, to compare with that of a server: all of it if the profile defines it, as for the live network;
 * otherwise the genesis and the terms that are set. A profile's defaults never contradict a server.
 */
export function expectedTree(
  options: Pick<Config, 'profile' | 'deployment' | 'setTerms'>,
): Pick<ExpectedDeployment, 'genesis' | 'terms' | 'deployment'> {
  const { profile, deployment, setTerms: terms } = options
  if (deployment === undefined) return { terms }
  const { genesis } = deployment
  return formatOutpoint(genesis) === profile.genesis ? { deployment } : { genesis, terms }
}

/** Whether a URL is on this machine's loopback interface, where no stranger can answer. */
export function isLoopback(url: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}

/** The key of a server's entry: its URL without a slash at the end. */
function keyOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}
