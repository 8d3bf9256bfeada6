import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { Mutex } from 'async-mutex'
import * as z from 'zod'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import {
  type ExpectedDeployment,
  jsonOfTree,
  MAX_TERM_LENGTH,
  type ServerDeployment,
  treeJson,
  treeOfJson,
} from '../mining/server-deployment.js'
import type { Config } from '../server/config/config.js'
import { writeDurably } from '../server/store/durable-file.js'
import { cut } from '../server/telemetry/escape-control-chars.js'
import { CommandError } from './command-error.js'
import type { CommandOutput } from './output.js'

const file = z.record(z.string(), treeJson)

type Entries = z.output<typeof file>

/**
 * The trees that servers named when they were first asked, in a file of the user's. A server that names another tree
 * later is not believed: trust on first use, as SSH does with host keys.
 *
 * The file is replaced by a rename, so a reader always finds a complete one. Two commands that add a server in the same
 * instant may lose one of the two entries; that server is then trusted, and announced, once more.
 */
export class KnownTrees {
  private readonly writing = new Mutex()

  private constructor(
    /** The file; it exists once a tree was remembered. */
    readonly path: string,
  ) {}

  /** `$XDG_CONFIG_HOME/minetree/known-trees.json`, below `~/.config` unless that is set. Reads nothing yet. */
  static open(env: Record<string, string | undefined>): KnownTrees {
    const { XDG_CONFIG_HOME: configured } = env
    // A relative path is to be ignored: XDG Base Directory Specification, "Basics".
    const folder =
      configured !== undefined && isAbsolute(configured) ? configured : join(env.HOME || homedir(), '.config')
    return new KnownTrees(join(folder, 'minetree', 'known-trees.json'))
  }

  /**
   * The tree that a server named first; undefined where none is remembered.
   *
   * @throws CommandError (`usage`) where the file exists and cannot be read or makes no sense: to go on would be to trust
   * any server anew. MiningError (`NEWER_COVENANT`) where a later release wrote of rules that this one does not know.
   */
  async treeOf(url: string): Promise<ServerDeployment | undefined> {
    const entries = await this.read()
    const key = keyOf(url)
    const found = Object.hasOwn(entries, key) ? entries[key] : undefined
    return found && treeOfJson(found, { says: `${this.path} has` })
  }

  /**
   * Remembers the tree of a server, in place of what was remembered of it.
   *
   * @throws CommandError (`usage`) where the file cannot be read or written.
   */
  private async remember(url: string, tree: ServerDeployment): Promise<void> {
    const kept = Object.entries(await this.read()).map(([key, tree]) => [
      key,
      { ...tree, genesis: formatOutpoint(tree.genesis) },
    ])
    const entries = { ...Object.fromEntries(kept), [keyOf(url)]: jsonOfTree(tree) }
    await this.possible('write', () => this.replace(`${JSON.stringify(entries, null, 2)}\n`))
  }

  /**
   * Holds what a server says against what it said first. A server on this machine is the user's own, and believed. The
   * first word of any other is remembered, with a note that shows the genesis and the file.
   *
   * @param asked.url The server.
   * @throws CommandError (`usage`) where the server names another tree than the one remembered, or the file cannot be read.
   */
  async trust(asked: { url: string; said: ServerDeployment; output: CommandOutput }): Promise<void> {
    const { url, said } = asked
    if (isLoopback(url)) return
    await this.writing.runExclusive(async () => {
      if (!(await this.isKnown(url, said))) await this.trustFirst(asked)
    })
  }

  /** Whether a server is remembered. @throws CommandError (`usage`) where it names another tree than the one remembered. */
  async isKnown(url: string, said: ServerDeployment): Promise<boolean> {
    const known = await this.treeOf(url)
    const difference = known && this.difference(url, { known, said })
    if (difference !== undefined) throw new CommandError(difference, { exit: 'usage' })
    return known !== undefined
  }

  private async trustFirst({ url, said, output }: Parameters<KnownTrees['trust']>[0]): Promise<void> {
    requirePlausible(url, said)
    const genesis = formatOutpoint(said.deployment.genesis)
    try {
      await this.remember(url, said)
    } catch (error) {
      // A home that cannot be written to is no reason to refuse: nothing is known yet that could be contradicted.
      const reason = error instanceof Error ? error.message : String(error)
      output.warn(
        `the genesis ${genesis} is on the word of ${url}, and not remembered: ${reason}; set GENESIS`,
      )
      return
    }
    output.note(`trusting ${url} for the genesis ${genesis} from now on: remembered in ${this.path}`)
  }

  /** One line on how a server contradicts what is remembered of it; undefined where it does not. */
  private difference(
    url: string,
    { known, said }: { known: ServerDeployment; said: ServerDeployment },
  ): string | undefined {
    const [was, is] = [jsonOfTree(known), jsonOfTree(said)]
    const way = `set GENESIS or --genesis to the one that is meant, or remove ${keyOf(url)} from ${this.path}`
    const [before, now] = [was.genesis, is.genesis]
    if (before !== now) return `${url} names the genesis ${now}, and named ${before} before: ${way}`
    for (const [term, name] of TERMS) {
      if (was[term] === is[term]) continue
      const [old, fresh] = [was[term] ?? 'none', is[term] ?? 'none'].map((value) => cut(String(value), 80))
      return `${url} names the ${name} ${fresh} for the tree of ${now}, and named ${old} before: ${way}`
    }
    return undefined
  }

  private async read(): Promise<Entries> {
    const text = await this.possible('read', async () => {
      try {
        return await readFile(this.path, 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    })
    if (text === undefined) return {}
    const parsed = file.safeParse(parse(text))
    if (parsed.success) return parsed.data
    throw new CommandError(`${this.path} is damaged: correct it or remove it, or set GENESIS`, {
      exit: 'usage',
    })
  }

  /** Under another name first, and on the disk before it is renamed: whoever reads finds the old or the new content. */
  private async replace(text: string): Promise<void> {
    await mkdir(dirname(this.path), { recursive: true, mode: 0o700 })
    const part = `${this.path}.${process.pid}-${randomBytes(4).toString('hex')}.part`
    await writeDurably({ file: this.path, part, content: text, flag: 'wx' })
  }

  private async possible<Result>(what: 'read' | 'write', doing: () => Promise<Result>): Promise<Result> {
    try {
      return await doing()
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new CommandError(`cannot ${what} ${this.path}: ${reason}`, { cause, exit: 'usage' })
    }
  }
}

/**
 * The tree that the settings speak of, to compare with what a server says: all of it where the profile has it, as that of
 * the live network; else the genesis and those terms that are set. A default of the profile contradicts no server.
 */
export function expectedTree({
  profile,
  deployment,
  setTerms: terms,
}: Pick<Config, 'profile' | 'deployment' | 'setTerms'>): Pick<
  ExpectedDeployment,
  'genesis' | 'terms' | 'deployment'
> {
  if (deployment === undefined) return { terms }
  const { genesis } = deployment
  return formatOutpoint(genesis) === profile.genesis ? { deployment } : { genesis, terms }
}

/** Whether a URL leads to this machine by its loopback name or address, so that no stranger can answer there. */
export function isLoopback(url: string): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}

/** One server is one entry, with or without a slash at the end of its URL. */
function keyOf(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

/** What may change beside the genesis, and what it is called. */
const TERMS = [
  ['profile', 'profile'],
  ['network', 'network'],
  ['covenantVersion', 'covenant version'],
  ['difficulty', 'difficulty'],
  ['marker', 'marker'],
  ['tld', 'tld'],
] as const

function requirePlausible(url: string, tree: ServerDeployment): void {
  const { marker = '', tld = '' } = jsonOfTree(tree)
  if (Math.max(marker.length, tld.length) <= MAX_TERM_LENGTH) return
  throw new CommandError(
    `${url} names a marker or a TLD of more than ${MAX_TERM_LENGTH} characters, which no tree has`,
    { exit: 'usage' },
  )
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON is as damaged as JSON that is no such list.
    return undefined
  }
}
