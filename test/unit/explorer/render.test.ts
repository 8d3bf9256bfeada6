import fc from 'fast-check'
import { type ComponentChildren, Fragment, h } from 'preact'
import { render as renderByPreact } from 'preact-render-to-string'
import { render } from '../../../src/explorer/render.js'
import { HOSTILE } from '../../support/explorer/world.js'

const text = fc.oneof(
  fc.string(),
  fc.constantFrom(HOSTILE, '', '<b>', '&amp;', '"', "'", '\u0000', '\ud800', '>'),
)
const child = fc.oneof(text, fc.integer(), fc.constantFrom(null, undefined, true, false, 0))
const value = fc.oneof(text, fc.integer(), fc.constantFrom(null, undefined, true, false))
const names = [
  ...['class', 'href', 'title', 'hidden', 'id', 'data-copy', 'data-live', 'aria-label', 'aria-hidden'],
  ...['spellcheck', 'draggable', 'autocomplete', 'viewBox', 'stroke-width', 'maxlength', 'tabindex', 'value'],
]
const attributes = fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 4 })

const Component = ({ children, label }: { children?: ComponentChildren; label: string }) =>
  h('b', { title: label }, children)

const { node } = fc.letrec<{ node: ComponentChildren; children: ComponentChildren[] }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    child,
    fc
      .tuple(fc.constantFrom('p', 'a', 'svg', 'path', 'ul', 'button', 'bdi'), attributes, tie('children'))
      .map(([type, props, children]) => h(type, props, ...children)),
    fc
      .tuple(fc.constantFrom('br', 'img', 'input', 'meta', 'link'), attributes)
      .map(([type, props]) => h(type, props)),
    fc.tuple(text, tie('children')).map(([label, children]) => h(Component, { label }, ...children)),
    tie('children').map((children) => h(Fragment, {}, ...children)),
    tie('children'),
    fc.constantFrom('<i>as it is</i>', 'x').map((__html) => h('p', { dangerouslySetInnerHTML: { __html } })),
  ),
  children: fc.array(tie('node'), { maxLength: 4 }),
}))

test('JSX becomes the HTML that Preact makes of it', () => {
  fc.assert(
    fc.property(node, (each) => {
      expect(render(each)).toBe(renderByPreact(h('main', {}, each)).slice('<main>'.length, -'</main>'.length))
    }),
    { numRuns: 500 },
  )
})
