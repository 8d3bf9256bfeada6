import type { Command } from 'commander'
import { encodeAddress } from '../../backend/src/protocol/address.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { ResolvedName } from '../client/resolve.js'
import { cut, escapeControlChars } from '../server/telemetry/public-text.js'
import { type CommandContext, defaultUrl, type Running, untilSignal } from './command.js'
import type { StoredIdentities } from './known-identities.js'
import type { CheckedName, NameCheckOptions } from './name-check.js'
import type { Colors, CommandOutput } from './output.js'

interface NameArguments {
  url: string[]
  genesis?: string
  requireProofs: boolean
  cache: boolean
}

/** Adds `resolve` and `verify`, which both verify a name, and report it in different ways. */
export function addNameCommands(program: Command, context: CommandContext): void {
  nameCommand(program, 'resolve', 'verify a name, and print where it is and who owns it: see docs/apps.md')
    .option('--accept', 'remember the identity key if it has changed', false)
    .action(async (name: string, options: NameArguments & { accept: boolean }) => {
      await untilSignal(context, (at) => runResolve(checkOptions(name, options, at), options))
    })
  nameCommand(program, 'verify', 'verify a name from the genesis on, and print each step').action(
    async (name: string, options: NameArguments) => {
      await untilSignal(context, (at) => runVerify(checkOptions(name, options, at)))
    },
  )
}

function nameCommand(program: Command, command: string, description: string): Command {
  return program
    .command(command)
    .description(description)
    .argument('<name>', '1 to 255 characters of a-z 0-9 -')
    .option('--url <url...>', 'the indexes to ask; none of them is trusted', [defaultUrl()])
    .option('--genesis <outpoint>', 'the tree; overrides GENESIS')
    .option('--require-proofs', 'accept only transactions in blocks', false)
    .option('--no-cache', 'verify everything again, and store nothing')
}

function checkOptions(
  name: string,
  { url, genesis, requireProofs, cache }: NameArguments,
  at: Running,
): NameCheckOptions {
  return {
    name,
    urls: url,
    requireProofs,
    cache,
    env: process.env,
    ...at,
    genesis,
  }
}

/** Verifies a name, with modules that only these commands load. */
async function checkedName(options: NameCheckOptions): Promise<CheckedName> {
  const { checkName, noteDissent } = await import('./name-check.js')
  const checked = await checkName(options)
  noteDissent(checked.reports, options.output)
  return checked
}

/** Prints a verified name, and compares its identity key with the one that it had before. */
export async function runResolve(
  options: NameCheckOptions,
  { accept }: { /** Remember a key that has changed. */ accept: boolean },
): Promise<void> {
  const { output, env } = options
  const { openKnownIdentities } = await import('./known-identities.js')
  let known: StoredIdentities | undefined
  const checked = await checkedName({
    ...options,
    known: async (genesis) => {
      known = await openKnownIdentities(env, genesis)
      return known
    },
  })
  await noteIdentity(checked, { known, accept, output })
  output.result(record(checked), ...lines(checked, output.colors))
}

/** Remembers the first identity key of a name, and warns of another one. */
async function noteIdentity(
  { name, identity, previousIdentityKey: before }: CheckedName,
  { known, accept, output }: { known: StoredIdentities | undefined; accept: boolean; output: CommandOutput },
): Promise<void> {
  const now = identity.state === 'bound' ? identity.identityKey : undefined
  if (before !== undefined && !accept) {
    output.warn(
      `the identity key of ${name} has changed from ${before}: send nothing of value until you know why; --accept remembers the new key`,
    )
    return
  }
  if (known === undefined || now === undefined || known.get(name) === now) return
  try {
    await known.set(name, now)
  } catch (error) {
    output.warn(`the identity key of ${name} is not remembered: ${messageOf(error)}`)
  }
}

function ownerOf({ tip, config }: CheckedName): string | undefined {
  return tip.owner && encodeAddress(tip.owner, config.network)
}

function lines(checked: CheckedName, colors: Colors): string[] {
  const { origin, tip, proven, config } = checked
  const headers = config.chainTracker === 'scripts-only'
  const provenText = proven
    ? 'yes'
    : headers
      ? 'no: CHAIN_TRACKER is scripts-only, so no block headers were checked'
      : 'no: some transactions are not in a block yet'
  return [
    `origin  ${formatOutpoint(origin.origin)}`,
    `tip     ${formatOutpoint(tip.tip)}`,
    `owner   ${ownerOf(checked) ?? 'no address: the lock is not P2PKH'}`,
    `proven  ${proven ? colors.green(provenText) : provenText}`,
    ...identityLines(checked, colors),
  ]
}

function identityLines(
  { identity, previousIdentityKey: before, confusables, freshness }: ResolvedName,
  colors: Colors,
): string[] {
  const found: string[] = []
  if (identity.state === 'bound') {
    const { identityKey, layout, protocol, profile } = identity
    found.push(`key     ${identityKey} (layout ${layout}, protocol ${protocol})`)
    const said = [profile.name, profile.domain].flatMap((text) =>
      text === undefined ? [] : [escapeControlChars(JSON.stringify(cut(text, MAX_SHOWN)))],
    )
    if (profile.avatar) said.push(formatOutpoint(profile.avatar))
    if (said.length > 0) found.push(`says    ${said.join(' at ')}, unverified`)
  } else
    found.push(
      identity.state === 'unbound'
        ? 'key     none: the name is bound to no identity'
        : `key     none: its identity binding does not hold (${identity.fault})`,
    )
  if (before !== undefined) found.push(`before  ${colors.yellow(before)}`)
  if (confusables.length > 0) found.push(`alike   ${confusables.slice(0, MAX_ALIKE).join(', ')}`)
  const { agreeing, asked, until } = freshness
  return [...found, `fresh   until ${new Date(until).toISOString()}, by ${agreeing} of ${asked} indexes`]
}

/** How many characters of a profile text are shown, and how many similar names. */
const MAX_SHOWN = 80
const MAX_ALIKE = 10

function record(checked: CheckedName): Record<string, unknown> {
  const { name, origin, tip, proven, spendStatus, checkedAt, genesis, genesisFrom, reports } = checked
  return {
    name,
    origin: formatOutpoint(origin.origin),
    tip: formatOutpoint(tip.tip),
    sequence: tip.sequence,
    owner: ownerOf(checked),
    script: toHex(tip.lockingScript),
    proven,
    height: origin.height,
    spendStatus,
    checkedAt: new Date(checkedAt).toISOString(),
    genesis,
    genesisFrom,
    identity: identityRecord(checked),
    ...(checked.previousIdentityKey !== undefined && { previousIdentityKey: checked.previousIdentityKey }),
    confusables: checked.confusables,
    freshUntil: new Date(checked.freshness.until).toISOString(),
    indexes: reports.map((report) => ({
      index: report.index,
      verdict: report.verdict,
      ...('message' in report && { message: report.message }),
    })),
  }
}

function identityRecord({ identity }: ResolvedName): object {
  if (identity.state !== 'bound') return identity
  const { avatar, ...said } = identity.profile
  return { ...identity, profile: { ...said, ...(avatar && { avatar: formatOutpoint(avatar) }) } }
}

/** Verifies a name, and prints each step. */
export async function runVerify(options: NameCheckOptions): Promise<void> {
  const { output } = options
  const checked = await checkedName(options)
  const held = steps(checked)
  output.result(
    { name: checked.name, proven: checked.proven, steps: held.map(([step, found]) => ({ step, found })) },
    ...held.map(([what, found]) => `${output.colors.green(what.padEnd(8))} ${found}`),
  )
}

function steps(checked: CheckedName): [what: string, found: string][] {
  const { origin, tip, genesis, genesisFrom, reports } = checked
  const agreeing = reports.filter(({ verdict }) => verdict === 'agrees').map(({ index }) => index)
  const given = {
    settings: 'from the settings',
    servers: 'according to the servers',
    remembered: 'as remembered from the first contact with the servers',
  }[genesisFrom]
  const { line } = origin
  const moves = tip.sequence === 1 ? '1 step' : `${tip.sequence} steps`
  return [
    ['genesis', `${genesis}, ${given}`],
    [
      'line',
      `${line.length === 1 ? '1 mint' : `${line.length} mints`} from it, each follows the rules of the tree`,
    ],
    ['origin', `${formatOutpoint(origin.origin)} is the name ${origin.name}`],
    ['tip', `${formatOutpoint(tip.tip)}, ${moves} from there along the ordinal`],
    ['blocks', blocks(checked)],
    ['unspent', `according to ${agreeing.join(', ')}`],
  ]
}

/** How many of the transactions are in blocks, and who says so. */
function blocks({ origin, tip, proven, config }: CheckedName): string {
  if (config.chainTracker === 'scripts-only')
    return 'not checked: CHAIN_TRACKER is scripts-only, so no block headers were checked'
  if (proven) return 'all transactions are in blocks of the chain with the most work'
  const all = [...origin.line, ...tip.path.slice(1)]
  const open = all.filter(({ height }) => height === undefined).length
  return `${open} of ${all.length} transactions are in no block yet; their scripts were run`
}
