import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { trackerName } from '../server/chain/chain-tracker.js'
import { type CheckedName, checkName, type NameCheckOptions, noteDissent } from './name-check.js'

/** Checks a name, and says each step that held. */
export async function runVerify(options: NameCheckOptions): Promise<void> {
  const { output } = options
  const checked = await checkName(options)
  noteDissent(checked.reports, output)
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
    settings: 'as set',
    servers: 'on the word of the servers that were asked',
    remembered: 'as they said when they were first asked',
  }[genesisFrom]
  const { line } = origin
  const moves = tip.sequence === 1 ? '1 step' : `${tip.sequence} steps`
  return [
    ['genesis', `${genesis}, ${given}`],
    [
      'line',
      `${line.length === 1 ? '1 mint' : `${line.length} mints`} from it, each by the rules of the tree`,
    ],
    ['origin', `${formatOutpoint(origin.origin)} is the name ${origin.name}`],
    ['tip', `${formatOutpoint(tip.tip)}, ${moves} from there by the flow of the ordinal`],
    ['blocks', blocks(checked)],
    ['unspent', `on the word of ${agreeing.join(', ')}`],
  ]
}

/** What of it is in the chain, and who says so. */
function blocks({ origin, tip, proven, config }: CheckedName): string {
  if (config.chainTracker === 'scripts-only')
    return 'not checked: CHAIN_TRACKER is scripts-only, so no block header was asked for'
  if (proven) return `all of it is in blocks that ${trackerName(config.chainTracker)} knows`
  const all = [...origin.line, ...tip.path.slice(1)]
  const open = all.filter(({ height }) => height === undefined).length
  return `${open} of ${all.length} transactions are in none yet; their scripts were run`
}
