import type { ComponentChildren, VNode } from 'preact'
import { type Dependency, dependency } from '../../backend/src/graph/dependencies.js'
import type { MapState } from '../../backend/src/graph/map-merge.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { HistoryStep, OrdinalHistory } from '../../backend/src/read/listings.js'
import type { Metadata } from '../../backend/src/read/metadata.js'
import {
  AddressLink,
  Badge,
  type BadgeKind,
  Card,
  contentLabel,
  Facts,
  Head,
  OutpointLink,
  PlainCard,
  Text,
  When,
} from './parts.js'
import { addressOf, blockTimes, type Explorer } from './reads.js'
import { byteSize, count, counted, isWellFormed } from './text.js'

/** How many steps of a history a page shows; the MAP of each is read. */
export const STEPS = 12

export interface StepView extends HistoryStep {
  map?: MapState
  time?: number | undefined
}

/**
 * The steps of an ordinal that a page shows, latest first, with the times of their blocks and of one more block.
 *
 * @param outpoint Undefined if its origin is not known.
 * @param options.from The latest step to show; by default, the last.
 * @param options.height The height of the additional block.
 */
export function lifeOf(
  explorer: Explorer,
  outpoint: Outpoint | undefined,
  { from, height }: { from: number | undefined; height: number | undefined },
) {
  const { listings } = explorer.store
  const start = from === undefined ? {} : { from }
  const history = outpoint && listings.history({ outpoint, order: 'newest', limit: STEPS, ...start })
  const timeOf = blockTimes(explorer, [{ height }, ...(history?.steps ?? [])])
  return { history, timeOf, steps: stepViews(explorer, history?.steps ?? [], timeOf) }
}

/** How many bytes of MAP are read for a page: this takes some milliseconds. */
const MAP_BYTES = 256 * 1024

/** The steps with their MAP, within the limit. */
export function stepViews(
  { store }: { store: { metadata: Pick<Metadata, 'own'> } },
  steps: readonly HistoryStep[],
  timeOf: (height: number | undefined) => number | undefined,
): StepView[] {
  let left = MAP_BYTES
  return steps.map((step): StepView => {
    const view = { ...step, time: timeOf(step.height) }
    if (step.mapLength === undefined || step.mapLength > left) return view
    left -= step.mapLength
    return { ...view, map: store.metadata.own(step.outpoint) }
  })
}

export function dependenciesOfHeights(steps: readonly StepView[]): Dependency[] {
  return steps.map(({ outpoint }) => dependency.proof(outpoint.txid))
}

interface SubjectView {
  explorer: Explorer
  title: string
  /** All of what the title may shorten. */
  whole: string
  /** The name to verify; undefined to verify only the ordinal. */
  name: string | undefined
  path: string
  /** Undefined if it is not known here. */
  origin: string | undefined
  tip: string
  verdict: { kind: BadgeKind; text: string }
  badges: ComponentChildren
  proof: { href: string; file: string; text: string }
  /** How the content is opened, if there is any. */
  open: { href: string; what: string } | undefined
  /** What it shows. */
  shown: ComponentChildren
  life: Pick<ReturnType<typeof lifeOf>, 'history' | 'steps'>
  /** The word for its first step. */
  began: 'Mined' | 'Inscribed'
  facts: Parameters<typeof Facts>[0]['facts']
  /** More about it, beside what it shows. */
  beside: ComponentChildren
}

/** A name or an ordinal: what it shows and its life, and beside it what is known about it. */
export function Subject({ explorer, title, whole, name, path, ...view }: SubjectView): VNode {
  const { origin, tip, verdict, badges, proof, open, shown, life, began, facts, beside } = view
  const { history, steps } = life
  return (
    <>
      <Head
        title={title}
        subject={whole}
        badges={
          <>
            <Badge id="verdict" kind={verdict.kind}>
              {verdict.text}
            </Badge>
            {badges}
          </>
        }
        actions={
          <>
            {origin !== undefined && <VerifyButton {...{ explorer, name, origin, tip }} />}
            <a class="btn ghost" href={proof.href} download={proof.file}>
              {proof.text}
            </a>
            {open && (
              <a class="btn" href={open.href}>
                Open {open.what}
              </a>
            )}
          </>
        }
      />
      <div class="split">
        <div class="stack">
          {shown}
          <div id="verification" class="card" hidden />
          {history && <Life {...{ explorer, history, steps, path, began }} />}
        </div>
        <div class="stack">
          <PlainCard label="Facts">
            <Facts facts={facts} />
          </PlainCard>
          {beside}
        </div>
      </div>
    </>
  )
}

interface LifeView extends Pick<SubjectView, 'explorer' | 'path' | 'began'> {
  history: OrdinalHistory
  steps: readonly StepView[]
}

function Life({ explorer, history, steps, path, began }: LifeView): VNode {
  const oldest = steps.at(-1)
  const { gatewayPrefix } = explorer.site
  const tip = formatOutpoint(steps[0]?.outpoint ?? history.origin)
  return (
    <Card title="Life" link={{ href: `${gatewayPrefix}/provenance/${tip}`, text: 'Provenance' }}>
      <ol class="steps">
        {steps.map((step) => (
          <Step key={step.sequence} {...{ explorer, history, step, began }} />
        ))}
      </ol>
      {oldest !== undefined && oldest.sequence > 0 && (
        <nav class="pager cluster" aria-label="Steps">
          <a class="btn ghost" href={`${path}?from=${oldest.sequence - 1}`}>
            {counted(oldest.sequence, 'earlier step')}
          </a>
        </nav>
      )}
    </Card>
  )
}

type StepOfLife = Pick<LifeView, 'explorer' | 'history' | 'began'> & { step: StepView }

function Step({ explorer, history, step, began }: StepOfLife): VNode {
  const isLast = step.sequence === history.last
  const { sequence, outpoint, height, time, map, mapLength } = step
  const written = formatOutpoint(outpoint)
  return (
    <li class={height === undefined ? 'open' : isLast ? 'now' : undefined}>
      {stepText(explorer, step, began)}
      <small class="cluster">
        <span>
          {sequence === 0 ? 'Origin' : `Step ${count(sequence)}`} · <When height={height} time={time} />
        </span>
        <OutpointLink outpoint={written} />
      </small>
      {map === undefined && mapLength !== undefined && (
        <p class="hint">{byteSize(mapLength)} of MAP: too much to show here.</p>
      )}
      {map !== undefined && map.size > 0 && (
        <details>
          <summary>{counted(map.size, 'entry', 'entries')} of MAP</summary>
          <MapTable map={map} most={8} />
        </details>
      )}
    </li>
  )
}

function stepText(
  explorer: Explorer,
  { sequence, content, owner, mapLength, blocked }: HistoryStep,
  began: string,
): VNode {
  const address = addressOf(explorer, owner)
  const to = address === undefined ? null : <AddressLink address={address} />
  if (blocked) return <span>Blocked by the operator</span>
  if (sequence === 0)
    return (
      <span>
        {began}
        {to && <> by {to}</>}
      </span>
    )
  if (content !== undefined) return <span>Inscribed again: {contentLabel(content)}</span>
  if (mapLength !== undefined) return <span>Metadata changed</span>
  return to ? <span>Transferred to {to}</span> : <span>Transferred to a script of its own</span>
}

const MAP_ENTRIES = 40

export function MapCard({ title, map }: { title: string; map: MapState | undefined }): VNode | null {
  if (map === undefined || map.size === 0) return null
  return (
    <Card title={title}>
      <MapTable map={map} />
    </Card>
  )
}

/** MAP as a list of keys and values; indexed values link to the other ordinals that have them. */
function MapTable({ map, most = MAP_ENTRIES }: { map: MapState; most?: number }): VNode {
  const facts = [...map]
    .slice(0, most)
    .map(([key, value]) => [<Text text={key} most={60} />, <MapValue name={key} value={value} />])
  return (
    <>
      <Facts facts={facts} isWide />
      {map.size > most && <p class="hint">And {counted(map.size - most, 'more entry', 'more entries')}.</p>}
      {map.truncated && <p class="hint">More than 64 KiB was written; the rest does not count.</p>}
    </>
  )
}

/** The longest value that gets a link, in characters. */
const LINKED = 200
const LISTED = 12

function MapValue({ name, value }: { name: string; value: string | ReadonlySet<string> }): VNode {
  if (typeof value === 'string') return <MapText name={name} text={value} />
  const texts = [...value].slice(0, LISTED)
  return (
    <>
      {texts.map((text, at) => (
        <span key={at}>
          {at > 0 && ', '}
          <MapText name={name} text={text} />
        </span>
      ))}
      {value.size > LISTED && ` and ${count(value.size - LISTED)} more`}
    </>
  )
}

function MapText({ name, text }: { name: string; text: string }): VNode {
  const isShort = name.length <= LINKED && text.length <= LINKED && isWellFormed(name + text)
  if (!isShort) return <Text text={text} most={240} />
  return (
    <a href={`/map?${new URLSearchParams({ key: name, value: text })}`} title="Others with this entry">
      <Text text={text} most={240} />
    </a>
  )
}

export function Owner({ explorer, owner }: { explorer: Explorer; owner: string | undefined }): VNode {
  const address = addressOf(explorer, owner)
  return address === undefined ? <span>a script of its own</span> : <AddressLink address={address} />
}

type Verifiable = Pick<SubjectView, 'explorer' | 'name' | 'tip'> & { origin: string }

/** A button that verifies in this browser. A script reveals it. */
function VerifyButton({ explorer, name, origin, tip }: Verifiable): VNode {
  return (
    <button
      class="btn ghost"
      type="button"
      hidden
      data-verify={name ?? origin}
      data-origin={origin}
      data-tip={tip}
      data-names={name === undefined ? '' : explorer.site.namesPrefix}
      data-gateway={explorer.site.gatewayPrefix}
      aria-controls="verification"
    >
      Verify in this browser
    </button>
  )
}
