import type { VNode } from 'preact'
import { dependency } from '../../backend/src/graph/dependencies.js'
import type { ContentTally, TalliedKind } from '../../backend/src/read/charts.js'
import { Bars, Columns, Figure, Growth } from './chart.js'
import { renderPage } from './page.js'
import { Card, Empty, Head } from './parts.js'
import { blockTimes, type Explorer, type MadePage } from './reads.js'
import { byteSize, count, counted } from './text.js'

const KINDS: Record<TalliedKind, string> = {
  directory: 'sites',
  image: 'images',
  audio: 'audio',
  video: 'video',
  page: 'pages',
  json: 'JSON',
  text: 'text',
  other: 'other',
}

export function chartsPage(explorer: Explorer): MadePage {
  const { store, site } = explorer
  const html = renderPage({
    site,
    title: 'Charts',
    description: 'Names over time, the work spent on them, and what is inscribed.',
    section: 'charts',
    path: '/charts',
    children: (
      <>
        <Head
          title="Charts"
          lede={
            <>
              Names over time, the work spent on them, and what is inscribed. The tree itself has{' '}
              <a href="/tree">a map</a>.
            </>
          }
        />
        <div class="split even">
          <NamesCharts explorer={explorer} />
          <ContentCharts content={store.charts.content()} />
        </div>
      </>
    ),
  })
  return { html, dependsOn: [dependency.names, dependency.inscriptions] }
}

function NamesCharts({ explorer }: { explorer: Explorer }): VNode {
  const { store, tree } = explorer
  const { step, counts } = store.charts.namesByHeight()
  const total = store.listings.counts().names
  const difficulty = tree?.difficulty
  const [first, last] = [counts[0], counts.at(-1)]
  if (first === undefined || last === undefined)
    return (
      <Card title="Names over time">
        <Empty>No name is proven to be in a block yet.</Empty>
      </Card>
    )
  const axis = {
    from: first.from,
    to: last.from + step,
    xText: heightText(explorer, first.from, last.from + step),
  }
  let proven = 0
  const sums = counts.map(({ from, names }) => {
    proven += names
    return { from, names, sum: proven }
  })
  const isWithin = (from: number): string => `${count(from)} to ${count(from + step - 1)}`
  return (
    <>
      <Card title="Names over time">
        <Figure
          says={`${counted(proven, 'name')} in blocks ${count(first.from)} to ${count(axis.to - 1)}${
            total > proven ? `, and ${count(total - proven)} without a known block` : ''
          }.`}
          columns={['Blocks', 'New names', 'Names']}
          rows={sums.map(({ from, names, sum }) => [isWithin(from), count(names), count(sum)])}
        >
          <Growth
            points={sums.flatMap(({ from, names, sum }) => [
              { x: from, y: sum - names },
              { x: from + step, y: sum },
            ])}
            {...axis}
            yText={short}
          />
        </Figure>
      </Card>
      {difficulty !== undefined && (
        <Card title="Work spent">
          <Figure
            says={`A name takes ${short(2 ** difficulty)} hashes on average: about ${short(proven * 2 ** difficulty)} in all, here in steps of ${count(step)} blocks.`}
            columns={['Blocks', 'Hashes, about']}
            rows={counts.map(({ from, names }) => [isWithin(from), short(names * 2 ** difficulty)])}
          >
            <Columns
              points={counts.map(({ from, names }) => ({
                x: from,
                y: names * 2 ** difficulty,
                title: `Blocks ${isWithin(from)}: ${counted(names, 'name')}, ${short(names * 2 ** difficulty)} hashes`,
              }))}
              step={step}
              {...axis}
              yText={short}
            />
          </Figure>
        </Card>
      )}
    </>
  )
}

/** A height with the date of its block, if its header is here. */
function heightText(explorer: Explorer, from: number, to: number): (height: number) => string[] {
  // The axis has at most ten places, at round heights.
  const scale = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, to - from))) - 1)
  const rounds = Array.from({ length: Math.ceil((to - from) / scale) + 1 }, (_, at) => ({
    height: (Math.ceil(from / scale) + at) * scale,
  }))
  const timeOf = blockTimes(explorer, rounds)
  return (height) => {
    const time = timeOf(height)
    return [count(height), ...(time === undefined ? [] : [new Date(time).toISOString().slice(0, 10)])]
  }
}

function ContentCharts({ content }: { content: readonly ContentTally[] }): VNode {
  if (content.length === 0)
    return (
      <Card title="Content by type">
        <Empty>No inscriptions yet.</Empty>
      </Card>
    )
  const kinds = summed(content, ({ kind }) => kind)
  // Everything below a thousand bytes is one size.
  const sizes = summed(content, ({ digits }) => Math.max(3, digits))
  const [all, bytes] = [sumOf(content, 'count'), sumOf(content, 'bytes')]
  const byBytes = [...kinds].sort(([, one], [, other]) => other.bytes - one.bytes)
  const bySize = [...sizes].sort(([one], [other]) => one - other)
  return (
    <>
      <Tally
        title="Content by type"
        says={`${counted(all, 'inscription')} of ${byteSize(bytes)}. A stream counts with its first part only.`}
        columns={['Type', 'Inscriptions', 'Size']}
        sums={byBytes.map(([kind, sum]) => ({ label: KINDS[kind], ...sum }))}
      />
      <Tally
        title="Content by size"
        says={`Half of all inscriptions are ${sizeText(middle(bySize, all))}.`}
        columns={['Size', 'Inscriptions', 'Together']}
        sums={bySize.map(([digits, sum]) => ({ label: sizeText(digits), ...sum }))}
        labels={84}
      />
    </>
  )
}

function Tally({
  title,
  says,
  columns,
  sums,
  labels,
}: {
  title: string
  says: string
  columns: readonly string[]
  sums: readonly ({ label: string } & Sum)[]
  labels?: number
}): VNode {
  const values = ({ count: number, bytes }: Sum) => [
    { value: number, text: count(number) },
    { value: bytes, text: byteSize(bytes) },
  ]
  return (
    <Card title={title}>
      <Figure
        says={says}
        columns={columns}
        rows={sums.map(({ label, ...sum }) => [label, ...values(sum).map(({ text }) => text)])}
      >
        <Bars
          panels={['Inscriptions', 'Size']}
          rows={sums.map(({ label, ...sum }) => ({ label, values: values(sum) }))}
          {...(labels && { labels })}
        />
      </Figure>
    </Card>
  )
}

interface Sum {
  count: number
  bytes: number
}

function summed<Key>(content: readonly ContentTally[], keyOf: (each: ContentTally) => Key): Map<Key, Sum> {
  const sums = new Map<Key, Sum>()
  for (const each of content) {
    const { count, bytes } = sums.get(keyOf(each)) ?? { count: 0, bytes: 0 }
    sums.set(keyOf(each), { count: count + each.count, bytes: bytes + each.bytes })
  }
  return sums
}

function sumOf(content: readonly ContentTally[], what: 'count' | 'bytes'): number {
  return content.reduce((sum, each) => sum + each[what], 0)
}

function middle(sizes: readonly [digits: number, sum: Sum][], all: number): number {
  let below = 0
  for (const [digits, { count }] of sizes) {
    below += count
    if (below * 2 >= all) return digits
  }
  return 3
}

function sizeText(digits: number): string {
  return `under ${byteSize(10 ** digits).replace('.0', '')}`
}

const SHORT = ['', ' K', ' M', ' G', ' T', ' P', ' E']

/** A number for an axis, such as `1.5 M`. */
function short(value: number): string {
  let [rest, unit] = [value, 0]
  while (rest >= 1000 && unit < SHORT.length - 1) [rest, unit] = [rest / 1000, unit + 1]
  return `${Number(rest.toPrecision(3))}${SHORT[unit]}`
}
