// OpenAI's Node SDK asks for embeddings, which it wants in base64 by itself; prints lengths and a likeness.
import OpenAI from "openai";

const model = process.argv[2];
const openai = new OpenAI({ maxRetries: 0 });
const input = ["a cat", "a kitten", "the stock market"];
const encoded = await openai.embeddings.create({ model, input });
const plain = await openai.embeddings.create({ model, input, encoding_format: "float" });

const product = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
const [cat, kitten, market] = encoded.data.map((item) => item.embedding);
console.log(
  JSON.stringify({
    sizes: encoded.data.map((item) => item.embedding.length),
    like: product(cat, kitten),
    unlike: product(cat, market),
    same: product(cat, plain.data[0].embedding),
    usage: encoded.usage,
  }),
);
