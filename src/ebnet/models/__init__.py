"""The paper's networks: `config` and `layout` describe them without torch, the rest builds and stores them."""
