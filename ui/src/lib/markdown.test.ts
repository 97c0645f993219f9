import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseInline, parseMarkdown, plainText, webAddress } from './markdown';

describe('Markdown of answers', () => {
  it('reads what models write', () => {
    const blocks = parseMarkdown('# Risk\n\nThe **cash** is `fine` [finding 1].\n\n- one\n- two\n  - deep\n\n1. a\n2. b\n\n> said\n\n```js\nlet a\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---');
    expect(blocks.map((block) => block.kind)).toEqual(['heading', 'paragraph', 'list', 'list', 'quote', 'code', 'table', 'rule']);
    const list = blocks[2]!;
    expect(list.kind === 'list' && list.items[1]!.map((block) => block.kind)).toEqual(['paragraph', 'list']);
    const paragraph = blocks[1]!;
    expect(paragraph.kind === 'paragraph' && paragraph.inner.map((part) => part.kind)).toEqual(['text', 'strong', 'text', 'code', 'text', 'cite', 'text']);
  });

  it('keeps HTML as text', () => {
    const [block] = parseMarkdown('<script>alert(1)</script> <img src=x onerror=alert(1)>');
    expect(block).toEqual({ kind: 'paragraph', inner: [{ kind: 'text', text: '<script>alert(1)</script> <img src=x onerror=alert(1)>' }] });
  });

  it('loads no images and follows only web addresses', () => {
    expect(parseInline('![a](https://evil.example/x.png)')).toEqual([{ kind: 'image', alt: 'a' }]);
    for (const bad of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'vbscript:x', '//evil', 'https://user:secret@bank.example']) {
      expect(webAddress(bad), bad).toBeNull();
      expect(parseInline(`[a](${bad})`).every((part) => part.kind !== 'link' || part.href.startsWith('https://bank')), bad).toBe(true);
    }
    expect(parseInline('see https://example.org/a_b.')[1]).toMatchObject({ kind: 'link', href: 'https://example.org/a_b' });
  });

  it('leaves names with underlines and lone marks as they are', () => {
    for (const text of ['snake_case_name', '2 * 3 * 4', 'a ` b', 'a [b', '**open']) expect(plainText(parseInline(text))).toBe(text);
  });

  it('ends, and quickly, on anything', () => {
    const marks = fc.array(fc.constantFrom('*', '_', '`', '[', ']', '(', ')', '!', '#', '>', '- ', '1. ', '\n', ' ', '|', '---', 'a', '~~', '```'), { maxLength: 400 });
    fc.assert(fc.property(marks, (parts) => void parseMarkdown(parts.join(''))));
    const began = performance.now();
    for (const part of ['*a ', '[', '`', '> ', '- ', '![', '_a', '**', '| ', '(']) parseMarkdown(part.repeat(20_000));
    expect(performance.now() - began).toBeLessThan(4000);
  });
});
