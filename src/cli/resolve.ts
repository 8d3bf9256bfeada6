import { encodeAddress } from '../../backend/src/protocol/address.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type CheckedName, checkName, type NameCheckOptions, noteDissent } from './name-check.js'
import type { Colors } from './output.js'

/** Prints what a name is: all of it checked, or nothing. */
export async function runResolve(options: NameCheckOptions): Promise<void> {
  const { output } = options
  const checked = await checkName(options)
  noteDissent(checked.reports, output)
  output.result(record(checked), ...lines(checked, output.colors))
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
      ? 'no: CHAIN_TRACKER is scripts-only, so no block header was asked for'
      : 'no: not all of it is in a block yet'
  return [
    `origin  ${formatOutpoint(origin.origin)}`,
    `tip     ${formatOutpoint(tip.tip)}`,
    `owner   ${ownerOf(checked) ?? 'no address: the lock is no P2PKH'}`,
    `proven  ${proven ? colors.green(provenText) : provenText}`,
  ]
}

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
    indexes: reports.map((report) => ({
      index: report.index,
      verdict: report.verdict,
      ...('message' in report && { message: report.message }),
    })),
  }
}
